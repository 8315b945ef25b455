import { setTimeout as sleep } from 'node:timers/promises';
import { ExpungeError } from '../errors.ts';
import { countPending, type HaltCode, isHaltedFor, type Run, type RunState } from '../ledger/run.ts';
import type { ResumeSettings, RunRules } from '../ledger/run-rules.ts';
import { stopsFor } from '../limiter/stop.ts';
import { rateSetting } from '../model/rate.ts';
import type { Target } from '../model/target.ts';
import type { Advice } from '../model/to-type.ts';
import type { RunAction } from '../operations/action.ts';
import type { RateChange } from '../operations/change-rate.ts';
import { detachedWarnings, standingWarnings } from '../operations/liveness.ts';
import type { RunOperations } from '../operations/operations.ts';
import type { RunRecord } from '../operations/run-record.ts';
import type { SteeredRun } from '../operations/steer-run.ts';
import { type ApiClient, isAway } from './client.ts';
import type { Field } from './setting-fields.ts';

/** Actions for runs through the API of a server, whose audit trail records the name of the token. */
export function remoteRuns(api: ApiClient): RunOperations {
  return {
    find: async (text) => (await readRecord(api, text)).run,
    findHalted: (target, halt) => findHalted(api, target, halt),
    pause: async (action) => steeredRunOf(await steer(api, 'pause', action, () => ({}))),
    cancel: async (action, onWait) => steeredRunOf(await steer(api, 'cancel', action, leftOf, { onWait })),
    async resume({ seen, rules, detach, ...action }) {
      const body = { seen, detach, ...bodyOf(rules) };
      const isLeft = ({ run }: RunRecord) => !detach || run.detached;
      const { record, warnings, ...steered } = await steer(api, 'resume', action, () => body, { isDone: isLeft });
      const { run, context } = record;
      const { stops } = context;
      const late = detach
        ? detachedWarnings(run, stopsFor(run, stops).alive, stops.target)
        : standingWarnings(run, context);
      return { ...steered, context, warnings: warnings ?? late };
    },
    changeRate: ({ run, by, rate }) =>
      post<RateChange>(api, `/runs/${run}/rate`, { reason: by.reason, rate: rate && rateSetting(rate) }),
    async remove({ run: id, by, seen }) {
      const { run } = await readRecord(api, id);
      const query = { rows: String(run.rows), seen: String(seen), reason: by.reason };
      const { warnings } = await api.json<{ warnings: string[] }>({ method: 'DELETE', path: `/runs/${id}`, query });
      return { run, warnings };
    },
  };
}

/** The run with this id, or whose id begins or ends with the text. Throws USAGE if there is none. */
export function readRecord(api: ApiClient, text = ''): Promise<RunRecord> {
  return api.json({ method: 'GET', path: `/runs/${encodeURIComponent(text)}/record` });
}

/** Reads each halted run as a whole: what is shown has the revision that the action names. */
async function findHalted(api: ApiClient, { fp }: Target, halt: HaltCode): Promise<Run[]> {
  const found: Run[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const request = { method: 'GET', path: '/runs', query: { state: 'halted', target: fp, cursor } } as const;
    const page = await api.json<{ items: { run: string; halt: string | null }[]; next: string | null }>(request);
    for (const item of page.items) if (item.halt === halt) found.push((await readRecord(api, item.run)).run);
    cursor = page.next;
  }
  return found.filter((run) => isHaltedFor(run, halt));
}

/** What was left of the run when a person confirmed. */
function leftOf(run: Run) {
  const left = countPending(run);
  return { left, shown: left };
}

function bodyOf({ expectAbsent, expect, onStatus, maxDeletes }: Partial<RunRules>) {
  const body: Record<Field<keyof ResumeSettings>, unknown> = {
    expect_absent: expectAbsent === true,
    expect,
    on_status: onStatus,
    max_deletes: maxDeletes,
  };
  return body;
}

/** `warnings`: null if the server answered before the action was carried out. */
type Steered = SteeredRun & { record: RunRecord; warnings: Advice[] | null };

function steeredRunOf({ before, run, isChanged }: Steered): SteeredRun {
  return { before, run, isChanged };
}

type Action = 'pause' | 'resume' | 'cancel';

const pollMs = 1_000;
const maxPolls = 600;

const ends: Record<Action, readonly RunState[]> = {
  pause: ['paused'],
  resume: ['running', 'completed'],
  cancel: ['cancelled', 'completed'],
};

/**
 * Asks for an action, and returns the run once the action is carried out; the server answers earlier if that takes long. Throws USAGE if the action
 * failed after that, as the audit trail says, and UNREACHABLE after ten minutes.
 */
async function steer(
  api: ApiClient,
  action: Action,
  { run: id, by }: RunAction,
  bodyFor: (before: Run) => object,
  { isDone = () => true, onWait = () => {} }: { isDone?: (record: RunRecord) => boolean; onWait?: () => void } = {},
): Promise<Steered> {
  const before = await readRecord(api, id);
  const answer = await api.action(`/runs/${id}/${action}`, { ...bodyFor(before.run), reason: by.reason });
  if (answer !== null) {
    const record = await readRecord(api, id);
    return { before: before.run, run: record.run, record, warnings: answer.warnings, isChanged: answer.changed };
  }
  onWait();
  for (let n = 0; n < maxPolls; n++) {
    const record = await readRecord(api, id).catch(unlessAway);
    const failure = record && newEntry(before, record, 'failed', action);
    if (failure)
      throw new ExpungeError('USAGE', String(failure.error), {
        next: (toType) => `see its status: ${toType('status', id, '--audit')}`,
      });
    if (record && isDone(record) && isCarriedOut(action, before, record))
      return { before: before.run, run: record.run, record, warnings: null, isChanged: true };
    await sleep(pollMs);
  }
  throw new ExpungeError('UNREACHABLE', `the server ${api.url} has not said yet whether it could ${action} run ${id}`, {
    next: (toType) => `see its status: ${toType('status', id, '--audit')}`,
  });
}

/** Returns null if the server, or its Redis, is away, so that waiting continues; throws any other error. */
export function unlessAway(error: unknown): null {
  if (isAway(error)) return null;
  throw error;
}

/** Whether the run is as asked for, or was since, as its audit trail says. A cancelled run first gets the answers to its requests in flight. */
function isCarriedOut(action: Action, before: RunRecord, now: RunRecord): boolean {
  if (ends[action].includes(now.run.state)) return true;
  return action !== 'cancel' && newEntry(before, now, action === 'resume' ? 'start' : action) !== undefined;
}

/**
 * The last action of this kind in the audit trail, unless it was there before. `failed`: an action that the server accepted but could not carry out.
 */
function newEntry(before: RunRecord, now: RunRecord, kind: string, action?: string) {
  const [old, last] = [before, now].map(({ audit }) =>
    audit.findLast((entry) => entry.action === kind && (action === undefined || entry.failedAction === action)),
  );
  return last?.at === old?.at ? undefined : last;
}

function post<T>(api: ApiClient, path: string, body: Record<string, unknown>): Promise<T> {
  return api.json<T>({ method: 'POST', path, body });
}
