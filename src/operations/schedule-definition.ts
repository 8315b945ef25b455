import { isName, nameRule } from '../config/list-source.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import { duration } from '../format.ts';
import { checkOptions, toInputOptions } from '../input/input-options.ts';
import { definitionsFor } from '../ledger/same-definitions.ts';
import { checkTiming, nextOccurrences, type Timing } from '../schedule/occurrences.ts';
import { type Definition, type ScheduledSettings, settingTexts } from '../schedule/schedule.ts';

/** The options that an operator gives for a schedule; missing ones have their default. */
export type GivenDefinition = { settings: ScheduledSettings } & {
  [F in Exclude<keyof Definition, 'settings'>]?: Definition[F] | undefined;
};

/** The definition of a schedule. Throws USAGE for missing or contradictory options. */
export function toDefinition({ settings, ...given }: GivenDefinition): Definition {
  const timing = timingOf(given);
  const { maxDeletes } = settings;
  if (maxDeletes === undefined || maxDeletes === null) {
    throw new ExpungeError('USAGE', 'scheduled runs are unattended: --max-deletes is required', {
      next: 'add --max-deletes N: a list with more ids than that is not deleted',
    });
  }
  checkOptions([], toInputOptions(settings));
  const { from = '', atMost = 0, retryFailed = false } = given;
  refuseUnsendableParts(atMost, maxDeletes);
  if (retryFailed) refuseShortKeep(timing, settings.keep);
  requireSourceName(from);
  return {
    ...timing,
    from,
    missed: given.missed ?? 'none',
    maxDelayMs: given.maxDelayMs ?? 600_000,
    maxGrowth: given.maxGrowth ?? 3,
    atMost,
    retryFailed,
    maxActiveMs: given.maxActiveMs ?? 0,
    stopAt: given.stopAt ?? '',
    settings: settingTexts(settings),
    definitions: definitionsFor(settings),
    heartbeat: given.heartbeat ?? '',
    note: given.note ?? '',
  };
}

function timingOf({ cron, tz = 'UTC' }: Partial<Record<keyof Timing, string | undefined>>): Timing {
  if (cron === undefined) throw new ExpungeError('USAGE', '--cron: expected a pattern like "0 3 * * *", got none');
  const timing = { cron: cron.trim(), tz };
  try {
    checkTiming(timing);
  } catch (error) {
    throw new ExpungeError('USAGE', `--cron ${cron} --tz ${tz}: ${messageOf(error)}`, { cause: error });
  }
  return timing;
}

/** Throws USAGE unless the source is given by name, so that an action can never contain a command, a file or a URL. */
function requireSourceName(from: string): void {
  if (isName(from)) return;
  const got = from && `, got "${from}"`;
  throw new ExpungeError('USAGE', `--from: expected the name of a source, of ${nameRule}${got}`);
}

/** Throws USAGE if `--at-most` exceeds `--max-deletes`: such an occurrence would always be refused. */
function refuseUnsendableParts(atMost: number, maxDeletes: number): void {
  if (atMost <= maxDeletes) return;
  throw new ExpungeError('USAGE', `--at-most ${atMost}: expected no more than --max-deletes, which is ${maxDeletes}`, {
    next: `raise --max-deletes, or use --at-most ${maxDeletes}`,
  });
}

const comparedOccurrences = 100;

/** Throws USAGE if runs are kept too briefly: the next occurrence reads what the run of the last one left, so that run must still be in Redis. */
function refuseShortKeep(timing: Timing, keepMs: number): void {
  const occurrences = nextOccurrences(timing, Date.now(), comparedOccurrences);
  const longest = Math.max(...occurrences.slice(1).map((occurrence, i) => occurrence - occurrences[i]!));
  if (keepMs > longest) return;
  const words = `--retry-failed: runs are kept for ${duration(keepMs)}, but occurrences can be ${duration(longest)} apart`;
  throw new ExpungeError('USAGE', words, { next: 'add a longer --keep' });
}
