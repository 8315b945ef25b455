import { ExpungeError, exitCodes } from '../errors.ts';
import { count } from '../format.ts';
import { isSealed, type Run } from '../ledger/run.ts';
import { inheritedSettings } from '../ledger/run-rules.ts';
import { exitOf, summaryOf } from '../ledger/summary.ts';
import { isWorthAnotherRun, type OutcomeCounts, outcomes, sumOutcomes } from '../model/outcome.ts';
import type { Invocation } from './command.ts';
import { sayOf, sayOn } from './session.ts';

/** A run of which another one retries ids, and how many of those had each outcome. */
export type Retries = { run: Run; chosen: OutcomeCounts };

/** Throws USAGE for a run that has not ended, and says how it can end. */
export function refuseLive({ id, state, command, detached }: Run): void {
  if (isSealed(state)) return;
  const cancel = `end it: expunge cancel ${id}`;
  const same = command === '' ? `expunge status ${id}` : command;
  const again = detached ? `expunge resume ${id}` : `expunge resume ${id} --detach, or the same command: ${same}`;
  const advice: Partial<Record<Run['state'], string>> = {
    preparing: `complete it with its own command: ${same}`,
    planned: `start it: ${again}; or ${cancel}`,
    running: `wait for its end: expunge status ${id} --watch; or ${cancel}`,
    cancelling: `wait for its end: expunge cancel ${id} --yes`,
  };
  throw new ExpungeError('USAGE', `run ${id} is ${state}; only a run that has ended can be retried`, {
    next: advice[state] ?? `let it continue: ${again}; or ${cancel}`,
  });
}

/**
 * The command with what the retried run was told, where the command itself says nothing else. Of ids that are unknown many may be gone. Throws
 * USAGE for a rate that this release cannot read: without it nothing would bound the retry.
 */
export function inherit(invocation: Invocation, { run, chosen }: Retries): Invocation {
  const { config, options } = invocation;
  if (config.rate === undefined && run.unreadRate !== '')
    throw new ExpungeError('USAGE', `the rate of run ${run.id} is in a form that this release can't read`, {
      next: 'give one: --rate 200/s',
    });
  const { burst, ...inherited } = inheritedSettings(run, invocation);
  const isPaced = config.rate !== undefined; // the burst of another rate says nothing
  const expectAbsent = config.expectAbsent || run.expectAbsent || chosen.unknown > 0;
  return {
    ...invocation,
    config: { ...config, ...inherited, burst: isPaced ? config.burst : (burst ?? config.burst), expectAbsent },
    options: { ...options, priority: options.priority ?? run.priority },
  };
}

/** Says that the ids were retried by a run that is over, and returns its exit code: a repeated command sends nothing twice. */
export function sayRetried(invocation: Invocation, { id }: Run, retry: Run): number {
  const parts = outcomes.filter((outcome) => retry.counts[outcome] > 0);
  const sums = parts.map((outcome) => `${count(retry.counts[outcome])} ${outcome}`).join(', ');
  const isLeft = sumOutcomes(retry.counts, isWorthAnotherRun) > 0;
  sayOn(invocation.stderr)(
    `These ids of run ${id} were retried by run ${retry.id}, which is ${retry.state}: ${sums}. Nothing is sent.`,
  );
  if (isLeft) sayOf(invocation)(`  Retry what that one left: expunge retry ${retry.id}`);
  const exit = exitOf(retry) ?? exitCodes.OK.exit;
  if (invocation.options.json) invocation.stdout.write(`${JSON.stringify(summaryOf(retry, exit, Date.now()))}\n`);
  return exit;
}
