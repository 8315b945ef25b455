import { type ApiClient, withServer } from '../api/client.ts';
import { readRecord } from '../api/remote-runs.ts';
import { namedTarget } from '../config/check-target.ts';
import { ExpungeError } from '../errors.ts';
import type { Target } from '../model/target.ts';
import type { MakeRunResult } from '../schedule/make-run.ts';
import type { HistoryEntry } from '../schedule/schedule.ts';
import type { ScheduleAction } from '../schedule/schedule-store.ts';
import { steeredText } from '../terminal/schedule-text.ts';
import { type Invocation, jsonLines, reasonOf } from './command.ts';
import { showSchedules, showSlots } from './schedule-list.ts';
import { reportOutcome } from './schedule-run.ts';
import { confirmRemoval } from './schedule-steer.ts';
import { type ScheduleRecord, unknownSchedule } from './schedule-work.ts';
import { refuseUnknownTarget } from './server-status.ts';
import { sayUnlessJson } from './session.ts';

/** `schedule list`, `preview`, `run`, `pause`, `resume` and `remove` by the API of a server, in whose audit trail the name of the token stands. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, verb, config, options } = invocation;
  if (options.dryRun)
    throw new ExpungeError('USAGE', '--dry-run needs Redis itself', { next: 'do it without --server' });
  const target = namedTarget(config);
  return withServer(invocation, sayUnlessJson(invocation), async (api) => {
    const records = await readRecords(api, target);
    if (verb === 'schedule list') {
      showSchedules(invocation, target, records, Date.now());
      return 0;
    }
    const name = args[0] ?? '';
    const found = records.find(({ schedule }) => schedule.name === name);
    if (found === undefined)
      throw unknownSchedule(
        records.map(({ schedule }) => schedule),
        target,
        name,
      );
    return orders[verb]!(invocation, api, { ...found, path: `/schedules/${target.fp}/${name}` });
  });
}

export async function readRecords(api: ApiClient, target: Target): Promise<ScheduleRecord[]> {
  await refuseUnknownTarget(api, target);
  const request = { method: 'GET', path: `/targets/${target.fp}/schedules` } as const;
  return (await api.json<{ items: ScheduleRecord[] }>(request)).items;
}

type Order = (invocation: Invocation, api: ApiClient, found: ScheduleRecord & { path: string }) => Promise<number>;

const orders: Record<string, Order> = {
  'schedule preview': async (invocation, _, { schedule }) => {
    showSlots(invocation, schedule);
    return 0;
  },
  'schedule run': run,
  'schedule pause': steer,
  'schedule resume': steer,
  'schedule remove': steer,
};

async function steer(invocation: Invocation, api: ApiClient, { schedule, path }: Parameters<Order>[2]) {
  const { verb, options, stdout, stderr, verbosity } = invocation;
  const action = verb.replace('schedule ', '') as ScheduleAction;
  if (action === 'remove') await confirmRemoval(invocation, schedule);
  const body = { reason: reasonOf(options) };
  const answer = await api.json<Placed>({ method: 'POST', path: `${path}/${action}`, body });
  stderr.write(`${steeredText(action, schedule, Date.now(), verbosity === 'quiet')}\n`);
  jsonLines(stdout, options.json)('schedule', withoutPlace(answer));
  return 0;
}

/** The run is made by the server, of the source that it has. */
async function run(invocation: Invocation, api: ApiClient, { schedule, path }: Parameters<Order>[2]) {
  const answer = await api.create<Placed>(`${path}/run`, { reason: reasonOf(invocation.options) });
  const { schedule: _, ...result } = withoutPlace(answer);
  const made = result as unknown as MakeRunResult;
  const isWhole = made.outcome !== 'started' || 'ids' in made;
  const whole = isWhole ? made : await startedIn(api, path, String(answer.run));
  return reportOutcome(invocation, schedule.name, whole, answer.warnings);
}

/** Where a request broke off once it had started a run, its repetition is answered with the id of the run and nothing else. */
async function startedIn(api: ApiClient, path: string, id: string) {
  const { rows, ids } = (await readRecord(api, id)).run;
  const { history } = await api.json<{ history: HistoryEntry[] }>({ method: 'GET', path });
  const entry = history.find(({ run }) => run === id);
  const left = { retried: entry?.retried ?? 0, carried: entry?.carried ?? 0, reason: entry?.reason ?? '' };
  return { outcome: 'started', run: id, rows, ids, ...left } as const;
}

/** The answer to an order, with its target. */
export type Placed = Record<string, unknown> & { warnings: string[] };

/** What a command prints: it names the target itself. */
export function withoutPlace({
  fp: _,
  target: __,
  account: ___,
  warnings: ____,
  ...facts
}: Placed): Record<string, unknown> {
  return facts;
}
