import { type ApiClient, withServer } from '../api/client.ts';
import { refuseUnknownTarget, unknownToServer } from '../api/remote-targets.ts';
import { namedTarget } from '../config/check-target.ts';
import { ExpungeError } from '../errors.ts';
import type { KnownTarget } from '../ledger/known-targets.ts';
import type { Target } from '../model/target.ts';
import type { StopResult } from '../terminal/stop-text.ts';
import { type Invocation, reasonOf } from './command.ts';
import { readTargetRecord } from './server-status.ts';
import { sayUnlessJson } from './session.ts';
import { reportStarted, reportStopped } from './stop-all.ts';
import { readBound, sayChanged, unknownTarget } from './target.ts';

/** stop-all, start-all and the orders of `target` by the API of a server, in whose audit trail the name of the token stands. Doing it twice changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { verb, config } = invocation;
  const target = namedTarget(config);
  const body = bodyOf(invocation);
  return withServer(invocation, sayUnlessJson(invocation), async (api) => {
    if (verb === 'stop-all' || verb === 'start-all') return stopOrStart(invocation, api, target);
    await refuseUnknownTarget(api, target);
    return change(invocation, api, target, body);
  });
}

/** What the API calls the orders of `target`. */
const actions: Record<string, string> = {
  'target release': 'release',
  'target forget-rate': 'forget-rate',
  'target pin-rate': 'rate',
  'target budget': 'budget',
  'target acknowledge': 'acknowledge',
};

/** Throws USAGE for what is no bound, before anything is sent. */
function bodyOf({ verb, args: [text = ''], options }: Invocation): Record<string, unknown> {
  const reason = reasonOf(options);
  if (verb !== 'target pin-rate' && verb !== 'target budget') return { reason };
  readBound(verb, text);
  return { reason, [actions[verb]!]: text === 'none' ? null : text };
}

async function change(invocation: Invocation, api: ApiClient, target: Target, body: object): Promise<number> {
  const { verb } = invocation;
  const { status } = await readTargetRecord(api, target);
  const mayBeNew = 'rate' in body || 'budget' in body || verb === 'target acknowledge';
  if (status.limiters.length === 0 && !mayBeNew) throw unknownTarget(await readKnown(api), verb, target);
  const path = `/targets/${target.fp}/${actions[verb]}`;
  const { changed } = await api.json<{ changed: boolean }>({ method: 'POST', path, body });
  return sayChanged(invocation, (await readTargetRecord(api, target)).status, changed);
}

/** For the targets that the server knows. What it reaches is counted afterwards, so that a stop takes effect first. */
async function stopOrStart(invocation: Invocation, api: ApiClient, named: Target): Promise<number> {
  const { verb, options } = invocation;
  const earlier = await readKnown(api);
  const accounts = earlier.filter(({ fp, baseUrl }) => fp !== named.fp && baseUrl === named.baseUrl);
  const targets = [...earlier.filter(({ fp }) => fp === named.fp), ...(options.allAccounts ? accounts : [])];
  if (targets.length === 0) throw unknownToServer(api, named);
  const body = { reason: reasonOf(options) };
  const action = verb.replace('-all', '');
  const changed = new Map<string, boolean>();
  for (const { fp } of targets) {
    const path = `/targets/${fp}/${action}`;
    changed.set(fp, (await api.json<{ changed: boolean }>({ method: 'POST', path, body })).changed);
  }
  const later = await readKnown(api);
  const ordered: StopResult[] = targets.map(({ fp }) => ({
    before: knownAs(fp, earlier).stops.target,
    isChanged: changed.get(fp) !== false,
    known: knownAs(fp, later),
  }));
  const others = later.filter(({ fp }) => targets.every((target) => target.fp !== fp));
  const report = verb === 'stop-all' ? reportStopped : reportStarted;
  report(invocation, ordered, others);
  return 0;
}

async function readKnown(api: ApiClient): Promise<KnownTarget[]> {
  return (await api.json<{ items: KnownTarget[] }>({ method: 'GET', path: '/known-targets' })).items;
}

function knownAs(fp: string, known: readonly KnownTarget[]): KnownTarget {
  const found = known.find((target) => target.fp === fp);
  if (found !== undefined) return found;
  throw new ExpungeError('INTERNAL', `the server has forgotten the target ${fp} meanwhile`);
}
