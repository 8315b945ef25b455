import { setTimeout as sleep } from 'node:timers/promises';
import { type ApiClient, withServer } from '../api/client.ts';
import { ExpungeError } from '../errors.ts';
import { pendingOf, type RunState } from '../ledger/run.ts';
import { type Invocation, reasonOf } from './command.ts';
import { sayDetached } from './finish-run.ts';
import { detachedWarnings } from './liveness.ts';
import { type PriorityChange, readPriority, sayChange as sayPriority } from './priority.ts';
import { type RateChange, readPace, sayChange as sayRate } from './rate.ts';
import type { RunRecord } from './run-record.ts';
import { readRecord, unlessAway } from './server-status.ts';
import { sayOf, sayUnlessJson, warnOn } from './session.ts';
import { confirmCancel, sayOutcome, untouched, waitsForAnswers } from './steer.ts';

/** pause, resume, cancel, rate and priority by the API of a server, in whose audit trail the name of the token stands. Doing it twice changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, verb, options } = invocation;
  if (verb === 'rate') readPace(args[1] ?? '', options.burst as number | undefined); // a mistake costs no request
  if (verb === 'priority') readPriority(args[1] ?? '');
  return withServer(invocation, sayUnlessJson(invocation), async (api) =>
    orders[verb]!(invocation, api, await readRecord(api, args[0])),
  );
}

type Order = (invocation: Invocation, api: ApiClient, before: RunRecord) => Promise<number>;

const orders: Record<string, Order> = { pause, resume, cancel, rate: changeRate, priority: changePriority };

async function pause(invocation: Invocation, api: ApiClient, before: RunRecord): Promise<number> {
  const { record, isChanged } = await steer(invocation, api, before, {});
  return sayOutcome(invocation, 'pause', { before: before.run, run: record.run, isChanged, ...untouched });
}

async function resume(invocation: Invocation, api: ApiClient, before: RunRecord): Promise<number> {
  const { detach, maxDeletes: max_deletes } = invocation.options;
  if (invocation.config.onStatus !== '')
    throw new ExpungeError('USAGE', 'resume cannot change --on-status over a server; nothing was resumed', {
      next: 'resume it with REDIS_URL instead of --server',
    });
  const expect_absent = invocation.config.expectAbsent;
  const body = { expect_absent, detach: detach === true, max_deletes };
  const { record, warnings, isChanged } = await steer(invocation, api, before, body);
  const { run, context } = record;
  const { isAbandoned, targets, stops } = context;
  if (detach)
    return sayDetached(invocation, run, stops.target, warnings ?? detachedWarnings(run, stops.alive, stops.target));
  return sayOutcome(invocation, 'resume', {
    before: before.run,
    run,
    isChanged,
    isAbandoned,
    targets,
    stop: stops.target,
  });
}

async function cancel(invocation: Invocation, api: ApiClient, before: RunRecord): Promise<number> {
  await confirmCancel(invocation, before.run);
  const left = pendingOf(before.run);
  const { record, isChanged } = await steer(invocation, api, before, { left, shown: left });
  return sayOutcome(invocation, 'cancel', { before: before.run, run: record.run, isChanged, ...untouched });
}

const pollMs = 1_000;
const pollsAtMost = 600;

const ends: Record<string, readonly RunState[]> = {
  pause: ['paused'],
  resume: ['running', 'completed'],
  cancel: ['cancelled', 'completed'],
};

/** `warnings`: null where the server answered before the order was carried out. */
type Steered = { record: RunRecord; warnings: string[] | null; isChanged: boolean };

/**
 * Gives an order, and returns the run once it is carried out: the server answers earlier where that takes long. Throws USAGE where it failed
 * after that, as the audit trail says, and UNREACHABLE after ten minutes.
 */
async function steer(invocation: Invocation, api: ApiClient, before: RunRecord, body: object): Promise<Steered> {
  const { verb, options } = invocation;
  const { id } = before.run;
  const answer = await api.order(`/runs/${id}/${verb}`, { ...body, reason: reasonOf(options) });
  if (answer !== null)
    return { record: await readRecord(api, id), warnings: answer.warnings, isChanged: answer.changed };
  if (verb === 'cancel') sayOf(invocation)(waitsForAnswers);
  for (let n = 0; n < pollsAtMost; n++) {
    const record = await readRecord(api, id).catch(unlessAway);
    const failure = record && newEntry(before, record, 'failed', verb);
    if (failure)
      throw new ExpungeError('USAGE', String(failure.error), { next: `see its status: expunge status ${id} --audit` });
    if (record && (!options.detach || record.run.detached) && isCarriedOut(verb, before, record))
      return { record, warnings: null, isChanged: true };
    await sleep(pollMs);
  }
  throw new ExpungeError('UNREACHABLE', `the server ${api.url} has not said yet whether it could ${verb} run ${id}`, {
    next: `see its status: expunge status ${id} --audit`,
  });
}

/** Whether the run is as ordered, or was so since, as its audit trail says. A cancelled run first gets the answers to its requests in flight. */
function isCarriedOut(verb: string, before: RunRecord, now: RunRecord): boolean {
  if (ends[verb]!.includes(now.run.state)) return true;
  return verb !== 'cancel' && newEntry(before, now, verb === 'resume' ? 'start' : verb) !== undefined;
}

/** The last action of this kind in the audit trail, unless it was there before; `failed`: an order that the server took, and could not carry out. */
function newEntry(before: RunRecord, now: RunRecord, kind: string, order?: string) {
  const [old, last] = [before, now].map(({ audit }) =>
    audit.findLast((entry) => entry.action === kind && (order === undefined || entry.order === order)),
  );
  return last?.at === old?.at ? undefined : last;
}

async function changeRate(invocation: Invocation, api: ApiClient, { run: { id } }: RunRecord): Promise<number> {
  const { args, options } = invocation;
  const rate = args[1] === 'none' ? null : args[1];
  return sayRate(
    invocation,
    await post<RateChange>(invocation, api, `/runs/${id}/rate`, { rate, burst: options.burst }),
  );
}

async function changePriority(invocation: Invocation, api: ApiClient, { run: { id } }: RunRecord): Promise<number> {
  const priority = invocation.args[1];
  return sayPriority(invocation, await post<PriorityChange>(invocation, api, `/runs/${id}/priority`, { priority }));
}

/** What the order changed; its warnings are told. */
async function post<T>(
  { options, stderr }: Invocation,
  api: ApiClient,
  path: string,
  body: Record<string, unknown>,
): Promise<T> {
  const request = { method: 'POST', path, body: { ...body, reason: reasonOf(options) } } as const;
  const { warnings = [], ...change } = await api.json<{ warnings?: string[] }>(request);
  warnOn(stderr, warnings);
  return change as T;
}
