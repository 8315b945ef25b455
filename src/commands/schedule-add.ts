import { readTarget, refusePlainHttp } from '../config/check-target.ts';
import { isName, nameRule } from '../config/list-source.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import { duration } from '../format.ts';
import { checkOptions, inputOptionsOf } from '../input/input-options.ts';
import type { ProtectedList } from '../input/spool.ts';
import { noteTarget } from '../ledger/known-targets.ts';
import type { Priority } from '../model/priority.ts';
import { suggest } from '../model/suggest.ts';
import type { Target } from '../model/target.ts';
import { unknownLiveness } from '../operations/liveness.ts';
import { refuseLoneBurst } from '../operations/lone-burst.ts';
import { type Session, withRedis } from '../operations/session.ts';
import { readClock } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { readProtectedList } from '../schedule/read-scheduled-list.ts';
import { type Definition, type Schedule, settingTexts } from '../schedule/schedule.ts';
import { addSchedule, readSchedule } from '../schedule/schedule-store.ts';
import { checkTiming, nextSlots, type Timing } from '../schedule/slots.ts';
import { addedText, differences } from '../terminal/schedule-text.ts';
import { type Invocation, jsonLines, reasonOf } from './command.ts';
import { scheduleFacts, withNotifiers } from './schedule-work.ts';
import { sayUnlessJson, whoAmI } from './session.ts';

/** Adds a schedule, or changes one with --replace. Doing it twice changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, config, env, stderr, stdout, verbosity } = invocation;
  const target = readTarget(config, env);
  refuseLoneBurst(invocation, null);
  const [name = ''] = args;
  if (!isName(name)) throw new ExpungeError('USAGE', `"${name}": expected a name of ${nameRule}`);
  const definition = readDefinition(invocation);
  const { protect } = definition.settings;
  const protectedList = await protectedListOf(invocation, protect);
  const add = async (session: Session) => {
    const before = await readSchedule(session.redis, target.fp, name);
    const now = Math.round(await readClock(session.redis, keys.schedules(target.fp))); // slots are due by it
    const reason = reasonOf(options);
    const replace = options.replace === true;
    const order = { at: now, by: 'operator', who: whoAmI(invocation.env), reason, replace, protectedList } as const;
    const done = await addSchedule(session.redis, target.fp, name, definition, order);
    if (done === 'exists') throw exists(name, before, definition);
    await noteTarget(session.redis, target, now);
    const schedule = (await readSchedule(session.redis, target.fp, name))!;
    const listeners = await setNotifier(session, target, schedule, before);
    stderr.write(`${addedText(done, schedule, now, before, verbosity === 'quiet')}\n`);
    if (before?.settings.protect !== undefined && protect === undefined)
      stderr.write(`warning: it no longer protects the ids of ${before.settings.protect}\n`);
    if (!listeners) warnOfSource(invocation, schedule, listeners);
    jsonLines(stdout, options.json)('schedule', { done, ...(await scheduleFacts(session, target, schedule, now)) });
    return 0;
  };
  return withRedis(invocation, sayUnlessJson(invocation), add, true);
}

/** An order over HTTP that leaves the file as it was says what is in it: only the machines of the workers have it. */
async function protectedListOf({ options, config }: Invocation, protect: string | undefined) {
  if (protect === undefined) return null;
  if (options.protectedList !== undefined) return options.protectedList as ProtectedList | null;
  return readProtectedList(config.stateDir, { path: protect, column: config.protectColumn ?? null }, config);
}

/** The schedule that the options and settings define. Throws USAGE for what is missing or contradicts itself. */
export function readDefinition({ options, config }: Pick<Invocation, 'options' | 'config'>): Definition {
  const timing = readTiming(options);
  if (config.maxDeletes === undefined || config.maxDeletes === null) {
    throw new ExpungeError('USAGE', 'scheduled runs are unattended: --max-deletes is required', {
      next: 'add --max-deletes N: a list with more ids than that is not deleted',
    });
  }
  checkOptions([], inputOptionsOf(config));
  const atMost = readAtMost(options, config.maxDeletes);
  const retryFailed = options.retryFailed === true;
  if (retryFailed) refuseShortKeep(timing, config.keep);
  const from = textOf(options, 'from');
  if (!isName(from)) {
    throw new ExpungeError(
      'USAGE',
      `--from: expected the name of a source, of ${nameRule}${from && `, got "${from}"`}`,
    );
  }
  return {
    ...timing,
    from,
    overlap: (options.overlap as Definition['overlap'] | undefined) ?? 'skip',
    missed: (options.missed as Definition['missed'] | undefined) ?? 'none',
    graceMs: (options.grace as number | undefined) ?? 600_000,
    maxGrowth: (options.maxGrowth as number | undefined) ?? 3,
    atMost,
    retryFailed,
    priority: (options.priority as Priority | undefined) ?? 'normal',
    settings: settingTexts(config),
    // What a change over HTTP does not say stays as it was.
    heartbeat: readHeartbeat(textOf(options, 'heartbeat'), config) || textOf(options, 'keptHeartbeat'),
    note: reasonOf(options) || textOf(options, 'note'),
  };
}

function textOf(options: Invocation['options'], name: string): string {
  const value = options[name];
  return typeof value === 'string' ? value : '';
}

/** More than `--max-deletes` can never be sent: such a slot would be refused. */
function readAtMost({ atMost = 0 }: Invocation['options'], maxDeletes: number): number {
  const most = Number(atMost);
  if (most <= maxDeletes) return most;
  throw new ExpungeError('USAGE', `--at-most ${most}: expected no more than --max-deletes, which is ${maxDeletes}`, {
    next: `raise --max-deletes, or use --at-most ${maxDeletes}`,
  });
}

const comparedSlots = 100;

/** The next slot reads what the run of the last one left, so that run must still be in Redis. */
function refuseShortKeep(timing: Timing, keepMs: number): void {
  const slots = nextSlots(timing, Date.now(), comparedSlots);
  const longest = Math.max(...slots.slice(1).map((slot, i) => slot - slots[i]!));
  if (keepMs > longest) return;
  const words = `--retry-failed: runs are kept for ${duration(keepMs)}, but slots can be ${duration(longest)} apart`;
  throw new ExpungeError('USAGE', words, { next: 'add a longer --keep' });
}

function readHeartbeat(url: string, { allowHttp }: Invocation['config']): string {
  if (url !== '') refusePlainHttp('--heartbeat', new URL(url).origin, allowHttp, 'hide that a slot failed');
  return url;
}

function readTiming({ cron, tz = 'UTC' }: Invocation['options']): { cron: string; tz: string } {
  if (typeof cron !== 'string')
    throw new ExpungeError('USAGE', '--cron: expected a pattern like "0 3 * * *", got none');
  const timing = { cron: cron.trim(), tz: String(tz) };
  try {
    checkTiming(timing);
  } catch (error) {
    throw new ExpungeError('USAGE', `--cron ${cron} --tz ${tz}: ${messageOf(error)}`, { cause: error });
  }
  return timing;
}

function exists(name: string, before: Schedule | null, definition: Definition): ExpungeError {
  const words = before === null ? '' : `: ${differences(before, definition).join(', ')}`;
  return new ExpungeError('USAGE', `schedule ${name} exists with other settings${words}`, {
    next: 'add --replace to change it, or use another name',
  });
}

/** Registers the notifier of a schedule, removes one of another source, and returns how many processes listen; null if Redis does not say. */
async function setNotifier(
  session: Session,
  target: Target,
  schedule: Schedule,
  before: Schedule | null,
): Promise<number | null> {
  const { name, from, state } = schedule;
  if (before !== null && before.from !== from)
    await withNotifiers(session, target, before.from, (notifiers) => notifiers.remove(name));
  return withNotifiers(session, target, from, async (notifiers) => {
    if (state === 'active') await notifiers.ensure(name, schedule);
    return notifiers.listeners();
  });
}

function warnOfSource({ config, stderr }: Invocation, { from }: Schedule, listeners: number | null): void {
  const known = Object.keys(config.sources);
  const nearest = known.includes(from) ? '' : suggest(from, known);
  const who = `worker of this target that has the source "${from}"`;
  const words = listeners === null ? unknownLiveness(who) : `no ${who} is alive`;
  stderr.write(`warning: ${words}; no run starts until one is.${nearest}\n`);
}
