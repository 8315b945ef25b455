import { requireAllowed } from '../config/check-target.ts';
import { isName, nameRule } from '../config/list-source.ts';
import { ExpungeError } from '../errors.ts';
import type { ProtectedList } from '../input/spool.ts';
import { noteTarget } from '../ledger/known-targets.ts';
import { suggest } from '../model/suggest.ts';
import type { Target } from '../model/target.ts';
import type { Advice } from '../model/to-type.ts';
import { readClock } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { scheduleChanged } from '../schedule/changed-schedule.ts';
import { readProtectedList } from '../schedule/read-scheduled-list.ts';
import { type Definition, parseStoredSettings, type Schedule } from '../schedule/schedule.ts';
import { readSchedule, addSchedule as storeSchedule } from '../schedule/schedule-store.ts';
import { differences } from '../terminal/schedule-text.ts';
import type { ScheduleAction } from './action.ts';
import { scheduleFacts } from './schedule-record.ts';
import type { SchedulePlace } from './schedule-work.ts';
import type { Session } from './session.ts';
import { requireTypedHost } from './typed-host.ts';

export type AddAction = ScheduleAction & {
  definition: Definition;
  /** Whether the action may change an existing schedule of that name. */
  replace: boolean;
  /** The revision that the definition was made from; without it, any schedule of that name is changed. */
  seen?: number | undefined;
  /** The contents of its file of protected ids, if they stay as they were; without it the file is read on this machine. */
  protectedList?: ProtectedList | null | undefined;
  /** The host of a protected target, as a person typed it. */
  confirmHost?: string | undefined;
};

/**
 * A schedule after an action. `before`: the earlier schedule of that name; `schedule`: null if it is not known yet; `at`: when that was, in ms since
 * 1970; `facts`: what `--json` prints about it.
 */
export type Added = {
  done: 'added' | 'same' | 'changed';
  before: Schedule | null;
  schedule: Schedule | null;
  at: number;
  facts: Record<string, unknown>;
  warnings: readonly Advice[];
};

export async function addSchedule(session: Session, place: SchedulePlace, action: AddAction): Promise<Added> {
  const { target, name, by, definition, replace } = action;
  if (!isName(name)) throw new ExpungeError('USAGE', `"${name}": expected a name of ${nameRule}`);
  requireAllowed(place.config, target); // a server knows its targets from Redis
  requireTypedHost(place.config, target, action.confirmHost);
  const { redis } = session;
  const protectedList = await protectedListOf(place, action);
  const before = await readSchedule(redis, target.fp, name);
  const seen = action.seen ?? (isThere(before) ? before.revision : 0);
  const at = Math.round(await readClock(redis, keys.schedules(target.fp))); // occurrences are due by this clock
  const noted = { at, by: 'operator', ...by } as const;
  const done = await storeSchedule(redis, target.fp, name, definition, { ...noted, replace, protectedList, seen });
  if (done === 'exists') throw exists(name, before, definition);
  if (done === 'stale') throw await changedMeanwhile(session, target, name);
  await noteTarget(redis, target, at);
  const schedule = (await readSchedule(redis, target.fp, name))!;
  const facts = await scheduleFacts(session, target, schedule, at);
  const warnings = [
    ...warningsOfProtection(before, schedule),
    ...(await warningsOfSource(session, place, target, schedule)),
  ];
  return { done, before, schedule, at, facts, warnings };
}

function isThere(schedule: Schedule | null): schedule is Schedule {
  return schedule !== null && schedule.state !== 'removed';
}

async function protectedListOf({ config }: SchedulePlace, { definition, protectedList }: AddAction) {
  const { protect: path, protectColumn: column = null, ...settings } = parseStoredSettings(definition);
  if (path === undefined) return null;
  if (protectedList !== undefined) return protectedList;
  return readProtectedList(config.stateDir, { path, column }, settings);
}

function exists(name: string, before: Schedule | null, definition: Definition): ExpungeError {
  const words = before === null ? '' : `: ${differences(before, definition).join(', ')}`;
  return new ExpungeError('USAGE', `schedule ${name} exists with other settings${words}`, {
    next: 'add --replace to change it, or use another name',
  });
}

async function changedMeanwhile({ redis }: Session, { fp }: Target, name: string): Promise<ExpungeError> {
  const now = await readSchedule(redis, fp, name);
  if (now !== null) return scheduleChanged(now, 'changed');
  return new ExpungeError('GUARD', `schedule ${name} is gone since it was shown; nothing was changed`);
}

function warningsOfProtection(before: Schedule | null, { settings }: Schedule): string[] {
  const file = before?.settings.protect;
  return file === undefined || settings.protect !== undefined ? [] : [`it no longer protects the ids of ${file}`];
}

async function warningsOfSource(
  { redis }: Session,
  { config }: SchedulePlace,
  { fp }: Target,
  { from }: Schedule,
): Promise<string[]> {
  if ((await redis.exists(keys.scheduleSource(fp, from))) > 0) return [];
  const known = Object.keys(config.sources);
  const nearest = known.includes(from) ? '' : suggest(from, known);
  return [`no worker of this target that has the source "${from}" is alive; no run starts until one is.${nearest}`];
}
