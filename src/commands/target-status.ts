import { namedTarget } from '../guard/check-target.ts';
import { type AuditEntry, auditFacts, readTargetAudit } from '../ledger/audit.ts';
import type { Target } from '../ledger/target.ts';
import { type LearnedStart, learnedStart, readTargetState } from '../limiter/read-target.ts';
import { readStops, stopAdvice, type TargetStops } from '../limiter/stop.ts';
import { auditText } from '../terminal/audit-text.ts';
import { paceText } from '../terminal/plan-text.ts';
import { plainLine } from '../terminal/style.ts';
import type { Invocation } from './command.ts';
import { type JsonLines, jsonLines } from './json-lines.ts';
import type { Session } from './session.ts';

const shownActions = 5;

/** How a target stands: whether it is stopped, where its rate begins, and what was done to all of it. */
export async function targetStatus({ config, options, stdout }: Invocation, { redis }: Session): Promise<number> {
  const target = namedTarget(config);
  const reads = [
    readStops(redis, target.fp),
    readTargetState(redis, target.fp),
    readTargetAudit(redis, target.fp),
  ] as const;
  const [stops, limiters, trail] = await Promise.all(reads);
  const learned = learnedStart(limiters, config.separateLimits ? ['annotations', 'views'] : ['all']);
  if (options.json) writeJson(jsonLines(stdout, true), target, { stops, learned, trail: options.audit ? trail : [] });
  else
    stdout.write(`${textOf(target, { stops, learned, trail: options.audit ? trail : trail.slice(-shownActions) })}\n`);
  return 0;
}

type Known = { stops: TargetStops; learned: LearnedStart | null; trail: readonly AuditEntry[] };

function writeJson(print: JsonLines, { baseUrl, account }: Target, { stops, learned, trail }: Known): void {
  const names = { target: baseUrl, account };
  for (const entry of trail) print('audit', { ...names, ...auditFacts(entry) });
  const counts = { stopped_processes: stops.processes.length, per_second: learned?.perSecond ?? null };
  print('target', { ...names, stop: stops.target, ...counts });
}

function textOf({ baseUrl, account }: Target, { stops, learned, trail }: Known): string {
  const name = account ? `${baseUrl} as account ${plainLine(account)}` : baseUrl;
  const rate = paceText(null, learned) || 'nothing is known of its limit yet';
  return [`Target ${name}`, ...[...stopLines(stops), rate, ...auditText(trail)].map((line) => `  ${line}`)].join('\n');
}

function stopLines({ target, processes }: TargetStops): string[] {
  const all = [target, ...processes].filter((stop) => stop !== null);
  return all.length === 0 ? ['not stopped'] : all.map((stop) => plainLine(stopAdvice(stop)));
}
