import type { Sources } from '../config/read-config.ts';
import { apiField, type Config, settings } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import type { Target } from '../model/target.ts';
import type { ScheduleAction } from '../operations/action.ts';
import type { AddAction, Added } from '../operations/add-schedule.ts';
import type { ScheduleOperations } from '../operations/operations.ts';
import type { MadeNow, madeFacts, RunScheduleAction } from '../operations/run-schedule.ts';
import { type HistoryFacts, type ScheduleRecord, unknownSchedule } from '../operations/schedule-record.ts';
import type { SteeredSchedule } from '../operations/steer-schedule.ts';
import type { Definition, Schedule } from '../schedule/schedule.ts';
import type { ScheduleActionName } from '../schedule/schedule-store.ts';
import type { ApiClient } from './client.ts';
import { refuseOtherDefinitions } from './remote-lists.ts';
import { readRecord, unlessAway } from './remote-runs.ts';
import { refuseUnknownTarget } from './remote-targets.ts';
import { refuseProtectFile, scheduleSettings } from './sent-settings.ts';
import { type AnsweredWarnings, readWarnings } from './warnings.ts';

/** The answer to an action, with its target. */
type Placed = Record<string, unknown> & AnsweredWarnings;

const elsewhere = 'leave it out, or do it where Redis can be reached, without --server';

/** Actions for schedules through the API of a server, whose audit trail records the name of the token. The server has their lists. */
export function remoteSchedules(api: ApiClient, said: { config: Config; sources: Sources }): ScheduleOperations {
  return {
    list: (target) => readRecords(api, target),
    find: (target, name) => find(api, target, name),
    add: (action) => {
      refuseProtectFile(said, { who: 'the workers of the server do', next: elsewhere });
      return add(api, action);
    },
    run: (action) => run(api, action),
    async dryRun() {
      throw new ExpungeError('USAGE', '--dry-run needs Redis itself', { next: 'do it without --server' });
    },
    pause: (action) => steer(api, 'pause', action, {}),
    resume: ({ seen, ...action }) => steer(api, 'resume', action, { seen }),
    remove: ({ seen, ...action }) => steer(api, 'remove', action, { seen }),
  };
}

async function readRecords(api: ApiClient, target: Target): Promise<ScheduleRecord[]> {
  await refuseUnknownTarget(api, target);
  const request = { method: 'GET', path: `/targets/${target.fp}/schedules` } as const;
  return (await api.json<{ items: ScheduleRecord[] }>(request)).items;
}

async function find(api: ApiClient, target: Target, name: string): Promise<Schedule> {
  const all = (await readRecords(api, target)).map(({ schedule }) => schedule);
  const found = all.find((schedule) => schedule.name === name);
  if (found === undefined) throw unknownSchedule(all, target, name);
  return found;
}

/** Adds a schedule. If one is replaced, its protected ids and its heartbeat stay as they are, because the API cannot change them. */
async function add(api: ApiClient, { target, name, by, definition, replace, confirmHost }: AddAction): Promise<Added> {
  if (definition.heartbeat !== '')
    throw new ExpungeError('USAGE', '--heartbeat: a server takes no URLs for schedules', { next: elsewhere });
  await refuseOtherDefinitions(api, definition.definitions);
  const look = async () => (await readRecords(api, target)).find(({ schedule }) => schedule.name === name)?.schedule;
  const before = (await look()) ?? null;
  const body = {
    target: target.fp,
    name,
    ...bodyOf(definition),
    reason: by.reason,
    replace,
    confirm_host: confirmHost,
  };
  const answer = await api.create<Placed & Pick<Added, 'done'>>('/schedules', body, false);
  const { done, when: _, ...facts } = omitTarget(answer); // --json does not print the time in words
  const schedule = (await look().catch(unlessAway)) ?? null;
  return { done: answer.done, before, schedule, at: Date.now(), facts, warnings: readWarnings(answer) };
}

/** The body with the whole definition: missing fields mean the default. */
function bodyOf({ settings: given, ...definition }: Definition) {
  const sent = scheduleSettings.filter((name) => name !== 'maxDeletes');
  const values = sent.map((name) =>
    settings[name].arg === null ? given[name] === 'true' || null : (given[name] ?? null),
  );
  return {
    ...Object.fromEntries(sent.map((name, i) => [apiField(name), values[i]])),
    cron: definition.cron,
    tz: definition.tz,
    from: definition.from,
    missed: definition.missed,
    max_deletes: Number(given.maxDeletes),
    max_delay_seconds: definition.maxDelayMs / 1_000,
    max_growth: definition.maxGrowth,
    at_most: definition.atMost,
    retry_failed: definition.retryFailed,
    max_duration_seconds: definition.maxActiveMs / 1_000,
    stop_at: definition.stopAt,
  };
}

async function steer(
  api: ApiClient,
  name: ScheduleActionName,
  action: ScheduleAction,
  more: { seen?: number },
): Promise<SteeredSchedule> {
  const body = { ...more, reason: action.by.reason };
  const answer = await api.json<Placed>({ method: 'POST', path: `${pathOf(action)}/${name}`, body });
  return { at: Date.now(), facts: omitTarget(answer) };
}

type Started = Extract<MadeNow['made'], { outcome: 'started' }>;

/** The result of an action; for a run that an earlier request had started, only its id. */
type RunAnswer = Placed & (ReturnType<typeof madeFacts> | { outcome: 'started'; run: string; ids?: never });

/** The server makes the run, from the source that it has. */
async function run(api: ApiClient, { by, seen, ...action }: RunScheduleAction): Promise<MadeNow> {
  const path = pathOf(action);
  const answer = await api.create<RunAnswer>(`${path}/run`, { reason: by.reason, seen });
  return { made: await madeOf(api, path, answer), warnings: readWarnings(answer) };
}

async function madeOf(api: ApiClient, path: string, answer: RunAnswer): Promise<MadeNow['made']> {
  if (answer.outcome === 'empty') return { outcome: 'empty', reason: answer.reason };
  if (answer.ids === undefined) return startedIn(api, path, answer.run);
  const { outcome, run, rows, ids, retried, carried_over: carriedOver, reason } = answer;
  return { outcome, run, rows, ids, retried, carriedOver, reason };
}

/** The id of a started run. If a request broke off after starting a run, its repetition is answered with that id and nothing else. */
async function startedIn(api: ApiClient, path: string, id: string): Promise<Started> {
  const { rows, ids } = (await readRecord(api, id)).run;
  const { history } = await api.json<{ history: HistoryFacts[] }>({ method: 'GET', path });
  const entry = history.find(({ run }) => run === id);
  const { retried = 0, carried_over: carriedOver = 0, reason = '' } = entry ?? {};
  return { outcome: 'started', run: id, rows, ids, retried, carriedOver, reason };
}

function pathOf({ target, name }: Pick<ScheduleAction, 'target' | 'name'>): string {
  return `/schedules/${target.fp}/${name}`;
}

/** The answer as a command prints it, without the target, which the command names itself. */
function omitTarget(answer: Placed): Record<string, unknown> {
  const { fp: _, target: __, account: ___, warnings: ____, commands: _____, ...facts } = answer;
  return facts;
}
