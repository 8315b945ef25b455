import { join } from 'node:path';
import { readTarget } from '../../config/check-target.ts';
import { settings } from '../../config/settings.ts';
import { ExpungeError, exitCodes } from '../../errors.ts';
import { count } from '../../format.ts';
import { countSettledRows } from '../../input/chunk-ids.ts';
import { shapeFacts } from '../../input/id-shapes.ts';
import { openInputs } from '../../input/open-inputs.ts';
import type { List } from '../../input/with-list.ts';
import { anyResource, sumIds } from '../../model/resource.ts';
import type { DryPlan } from '../../operations/dry-plan.ts';
import { checkList, checkUnseen, dryRunWarning } from '../../operations/plan-list.ts';
import { withReadList } from '../../operations/read-list.ts';
import { forecastFacts } from '../../terminal/forecast-text.ts';
import { type Progress, startProgress } from '../../terminal/live-panel.ts';
import type { Plan } from '../../terminal/plan-text.ts';
import { connection, type Invocation, jsonLines, notifying, sending } from '../command.ts';
import { readCredentials } from '../credentials.ts';
import { infoWriter, progressStream, toListAction } from '../session.ts';
import { writePlan } from './show-plan.ts';

/** Reads the list, then plans, confirms, deletes and reports. Repeating the command resumes its run. */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, env, options } = invocation;
  if (options.rehearse) {
    const { rehearse } = await import('./rehearse.ts');
    const rejectsFolder = join(config.stateDir, 'rejects'); // messages name it, and the folder of a rehearsal is removed
    return rehearse(invocation, (here, body) => withNamedList(here, here.args, body, { rejectsFolder }));
  }
  if (options.faults !== undefined)
    throw new ExpungeError('USAGE', '--faults needs --rehearse: it describes the sandbox of a rehearsal');
  if (options.detach) refuseWorkerFlags(invocation);
  const action = toListAction(invocation);
  const target = readTarget(config, env);
  const credentials = options.dryRun ? null : readCredentials(invocation);
  return withNamedList(invocation, invocation.args, async (list) => {
    checkList(action, list.spool);
    checkUnseen(action, list.spool);
    if (list.spool.rows === 0) infoWriter(invocation)('The list is empty: 0 rows. --allow-empty accepts that.');
    if (credentials === null) {
      const { planOfDryRun } = await import('../../operations/dry-plan.ts');
      const dry = await planOfDryRun(action, { target, list, retries: null, applied: null });
      return showDryRun(invocation, list, { ...dry, notes: [dryRunWarning(action, list.spool), ...dry.notes] });
    }
    const { runList } = await import('./run-list.ts'); // a dry run and a refused list do not need it
    return runList(invocation, { action, target, credentials, list, retries: null, applied: null });
  });
}

/**
 * Throws USAGE for flags about sending, which workers decide. Variables and files are accepted: they may be meant for a worker on the same machine.
 */
export function refuseWorkerFlags({ sources }: Invocation): void {
  const flags = [...sending, ...notifying, ...connection].filter((name) => sources[name] === 'flag');
  if (flags.length === 0) return;
  const names = flags.map((name) => `--${settings[name].flag}`).join(', ');
  throw new ExpungeError('USAGE', `${names}: with --detach, workers send the requests with their own settings`, {
    next: (toType) => `omit it here and set it on the workers: ${toType('worker', ...names.split(', '), '…')}`,
  });
}

/**
 * Shows the plan and sends nothing; needs neither a token nor Redis. `notes`: further lines about it; '' is skipped. Throws what would refuse the run,
 * and otherwise returns the exit code that it has at best.
 */
export async function showDryRun(
  { stdout, stderr, options, toType, verbosity }: Invocation,
  { spool }: List,
  { plan, notes = [], refusal = null }: Pick<DryPlan, 'plan'> & Partial<DryPlan>,
): Promise<number> {
  const out = options.json ? stderr : stdout; // the plan is the result
  writePlan(out, plan, toType);
  for (const note of notes.filter(Boolean)) stderr.write(`${note}\n`);
  out.write(`${dryRunEnd(plan.ids, verbosity === 'quiet')}\n`);
  const { rows, ids, sha256 } = spool;
  const facts = {
    rows,
    ...ids,
    ...countSettledRows(spool),
    protected_read: spool.protectedList?.ids ?? null,
    sha256,
    first_url: plan.firstUrl,
    last_id: plan.lastId,
    ends_without_newline: plan.endsWithoutNewline,
    looks: shapeFacts(plan.shapes),
    redis_round_trip_ms: plan.redisMs,
    expected: forecastFacts(plan.forecast),
  };
  jsonLines(stdout, options.json)('plan', { dry_run: true, base_url: plan.baseUrl, ...facts });
  if (refusal !== null) throw refusal;
  return spool.rejected > 0 ? exitCodes.INCOMPLETE.exit : exitCodes.OK.exit;
}

/** The last lines of a dry run: how to delete the ids, if there are any, unless `isQuiet`. */
export function dryRunEnd(ids: Plan['ids'], isQuiet = false): string {
  if (sumIds(ids) === 0) return 'Dry run: nothing was sent, and the list holds no id to delete.';
  return `Dry run: nothing was sent.${isQuiet ? '' : '\n  Delete them: the same command without --dry-run'}`;
}

/** Reads the list of a command, shows the progress, and calls `body`; then removes the spooled list. Throws what `withList` throws. */
export async function withNamedList<T>(
  invocation: Invocation,
  paths: string[],
  body: (list: List) => Promise<T>,
  elsewhere: { rejectsFolder?: string } = {},
): Promise<T> {
  const { config, options, stdin, env } = invocation;
  const shown: Progress[] = [];
  const stop = () => shown.pop()?.stop();
  const open = async () => {
    refuseTerminalAsStdin(paths, stdin);
    const opened = await openInputs(paths, stdin);
    const files = opened.map((file) => ({ ...file, isUnattended: options.yes === true }));
    const names = files.map(({ name }) => name).join(', ');
    let rows = 0;
    const onRows = (n: number) => {
      rows += n;
    };
    shown.push(startProgress(progressStream(invocation), env, () => `Reading ${names}: ${count(rows)} rows`));
    return { ...elsewhere, files, onRows };
  };
  try {
    return await withReadList(config, open, (list) => {
      stop();
      return body(list);
    });
  } finally {
    stop();
  }
}

function refuseTerminalAsStdin(args: string[], stdin: NodeJS.ReadStream): void {
  if (!args.includes('-') || !stdin.isTTY) return;
  throw new ExpungeError('USAGE', 'ids are expected on stdin, but it is a terminal', {
    next: (toType) => `pipe them in, or name a file: ${toType('run', 'FILE', '--resource', anyResource)}`,
  });
}
