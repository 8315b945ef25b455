import { ExpungeError } from '../errors.ts';
import type { KnownTarget } from '../ledger/known-targets.ts';
import { type Rate, rateSetting } from '../model/rate.ts';
import type { Target } from '../model/target.ts';
import type { TargetOrder } from '../operations/action.ts';
import type { TargetChange, TargetOperations } from '../operations/operations.ts';
import type { Reached, StopOrder } from '../operations/stop-targets.ts';
import type { TargetRecord } from '../operations/target-status.ts';
import { targetName } from '../terminal/stop-text.ts';
import type { ApiClient } from './client.ts';

/** Orders for targets through the API of a server, whose audit trail records the name of the token. It steers the targets that it knows. */
export function remoteTargets(api: ApiClient): TargetOperations {
  return {
    known: () => readKnown(api),
    async status(target) {
      await refuseUnknownTarget(api, target);
      return (await readTargetRecord(api, target)).status;
    },
    async record(target) {
      await refuseUnknownTarget(api, target);
      return readTargetRecord(api, target);
    },
    stopAll: (order) => orderAll(api, 'stop', order),
    startAll: (order) => orderAll(api, 'start', order),
    stop: (order) => change(api, 'stop', order),
    start: ({ seen, ...order }) => change(api, 'start', order, { seen }),
    release: (order) => change(api, 'release', order),
    forgetRate: (order) => change(api, 'forget-rate', order),
    acknowledge: ({ seen, ...order }) => change(api, 'acknowledge', order, { seen }),
    pinRate: ({ seen, rate, ...order }) => change(api, 'rate', order, { seen, rate: textOf(rate) }),
    setBudget: ({ seen, rate, ...order }) => change(api, 'budget', order, { seen, budget: textOf(rate) }),
  };
}

function textOf(rate: Rate | null): string | null {
  return rate && rateSetting(rate);
}

export async function readTargetRecord(api: ApiClient, target: Target): Promise<TargetRecord> {
  return api.json({ method: 'GET', path: `/targets/${target.fp}/record` });
}

async function readKnown(api: ApiClient): Promise<KnownTarget[]> {
  return (await api.json<{ items: KnownTarget[] }>({ method: 'GET', path: '/known-targets' })).items;
}

async function change(api: ApiClient, action: string, order: TargetOrder, more: object = {}): Promise<TargetChange> {
  const isChanged = await post(api, action, order, more);
  return { isChanged, status: (await readTargetRecord(api, order.target)).status };
}

async function post(api: ApiClient, action: string, { target, by }: TargetOrder, more: object = {}): Promise<boolean> {
  const path = `/targets/${target.fp}/${action}`;
  const body = { ...more, reason: by.reason };
  return (await api.json<{ changed: boolean }>({ method: 'POST', path, body })).changed;
}

/** Counts what an order reaches, after the stop has taken effect. */
async function orderAll(
  api: ApiClient,
  action: 'stop' | 'start',
  { target: named, allAccounts, by }: StopOrder,
): Promise<Reached> {
  const earlier = await readKnown(api);
  const accounts = earlier.filter(({ fp, baseUrl }) => fp !== named.fp && baseUrl === named.baseUrl);
  const targets = [...earlier.filter(({ fp }) => fp === named.fp), ...(allAccounts ? accounts : [])];
  if (targets.length === 0) throw unknownToServer(api, named);
  const changed = new Map<string, boolean>();
  for (const target of targets) {
    const seen = action === 'start' ? { seen: (await readTargetRecord(api, target)).status.revision } : {};
    changed.set(target.fp, await post(api, action, { target, by }, seen));
  }
  const later = await readKnown(api);
  const ordered = targets.map(({ fp, stops }) => {
    return { before: stops.target, isChanged: changed.get(fp) !== false, known: knownAs(fp, later) };
  });
  return { ordered, others: later.filter(({ fp }) => !changed.has(fp)) };
}

function knownAs(fp: string, known: readonly KnownTarget[]): KnownTarget {
  const found = known.find((target) => target.fp === fp);
  if (found !== undefined) return found;
  throw new ExpungeError('INTERNAL', `the server no longer knows the target ${fp}`);
}

/** Throws USAGE for a target that the server does not know. */
export async function refuseUnknownTarget(api: ApiClient, target: Target): Promise<void> {
  const { items } = await api.json<{ items: { fp: string }[] }>({ method: 'GET', path: '/targets' });
  if (!items.some(({ fp }) => fp === target.fp)) throw unknownToServer(api, target);
}

function unknownToServer({ url }: ApiClient, target: Target): ExpungeError {
  return new ExpungeError('USAGE', `the server ${url} knows no target ${targetName(target)}`, {
    next: 'check --base-url and --account; a server knows a target once a worker of it has started',
  });
}
