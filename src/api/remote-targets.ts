import { ExpungeError } from '../errors.ts';
import type { KnownTarget } from '../ledger/known-targets.ts';
import { rateSetting } from '../model/rate.ts';
import type { Target } from '../model/target.ts';
import type { TargetAction } from '../operations/action.ts';
import type { TargetChange, TargetOperations } from '../operations/operations.ts';
import type { Reached, StopAction } from '../operations/stop-targets.ts';
import type { TargetRecord } from '../operations/target-status.ts';
import { targetName } from '../terminal/stop-text.ts';
import type { ApiClient } from './client.ts';

/** Actions for targets through the API of a server, whose audit trail records the name of the token. It steers the targets that it knows. */
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
    stopAll: (action) => actOnAll(api, 'stop', action),
    startAll: (action) => actOnAll(api, 'start', action),
    stop: (action) => change(api, 'stop', action),
    start: ({ seen, ...action }) => change(api, 'start', action, { seen }),
    release: (action) => change(api, 'release', action),
    forgetRate: (action) => change(api, 'forget-rate', action),
    acknowledge: ({ seen, ...action }) => change(api, 'acknowledge', action, { seen }),
    setLimit: ({ seen, limit, ...action }) =>
      change(api, 'limit', action, { seen, limit: limit && rateSetting(limit) }),
    setMinGrace: ({ seen, graceMs, ...action }) =>
      change(api, 'grace', action, { seen, grace_seconds: graceMs / 1_000 }),
  };
}

export async function readTargetRecord(api: ApiClient, target: Target): Promise<TargetRecord> {
  return api.json({ method: 'GET', path: `/targets/${target.fp}/record` });
}

async function readKnown(api: ApiClient): Promise<KnownTarget[]> {
  return (await api.json<{ items: KnownTarget[] }>({ method: 'GET', path: '/known-targets' })).items;
}

async function change(api: ApiClient, name: string, action: TargetAction, more: object = {}): Promise<TargetChange> {
  const isChanged = await post(api, name, action, more);
  return { isChanged, status: (await readTargetRecord(api, action.target)).status };
}

async function post(api: ApiClient, name: string, { target, by }: TargetAction, more: object = {}): Promise<boolean> {
  const path = `/targets/${target.fp}/${name}`;
  const body = { ...more, reason: by.reason };
  return (await api.json<{ changed: boolean }>({ method: 'POST', path, body })).changed;
}

/** Counts what an action reaches, after the stop has taken effect. */
async function actOnAll(
  api: ApiClient,
  name: 'stop' | 'start',
  { target: named, allAccounts, by }: StopAction,
): Promise<Reached> {
  const earlier = await readKnown(api);
  const accounts = earlier.filter(({ fp, baseUrl }) => fp !== named.fp && baseUrl === named.baseUrl);
  const targets = [...earlier.filter(({ fp }) => fp === named.fp), ...(allAccounts ? accounts : [])];
  if (targets.length === 0) throw unknownToServer(api, named);
  const changed = new Map<string, boolean>();
  for (const target of targets) {
    const seen = name === 'start' ? { seen: (await readTargetRecord(api, target)).status.revision } : {};
    changed.set(target.fp, await post(api, name, { target, by }, seen));
  }
  const later = await readKnown(api);
  const reached = targets.map(({ fp, stops }) => {
    return { before: stops.target, isChanged: changed.get(fp) !== false, known: knownAs(fp, later) };
  });
  return { reached, others: later.filter(({ fp }) => !changed.has(fp)) };
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
