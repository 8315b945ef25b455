import { lookup } from 'node:dns/promises';
import { readTarget } from '../config/check-target.ts';
import { isLoopback, withoutUrlSecrets } from '../config/parse-url.ts';
import { excerptOf } from '../delete/delete-id.ts';
import { reachOrigin, TargetConnection, type TargetConnectionOptions } from '../delete/send-delete.ts';
import { type Answer, type Verdict, verdictOf, verdictsWith } from '../delete/verdict.ts';
import { ExpungeError, exitCodes } from '../errors.ts';
import { duration } from '../format.ts';
import { inputOptionsOf } from '../input/input-options.ts';
import { protectFileOf, readProtected } from '../input/read-protected.ts';
import { noteTargetAction } from '../ledger/audit.ts';
import { describeBodies } from '../ledger/bodies.ts';
import { readTargetState } from '../limiter/read-target.ts';
import { readStops, stopAdvice } from '../limiter/stop.ts';
import { checkId, idPath } from '../model/check-id.ts';
import { type Resource, resources } from '../model/resource.ts';
import { rejectionMend } from '../model/row.ts';
import { successStatus } from '../model/status.ts';
import type { Target } from '../model/target.ts';
import { type Finding, fail } from '../redis/server.ts';
import { explainConnectionError } from '../system-errors.ts';
import { commandFor } from '../terminal/stop-text.ts';
import { sleepUntilAborted } from '../wait.ts';
import { readStopFile } from '../worker/stop-file.ts';
import { type Invocation, reasonOf } from './command.ts';
import { type Credentials, readAuthorities } from './credentials.ts';
import { type Session, whoAmI, withRedis } from './session.ts';

/** The object that `--probe-id` deletes. */
export type Probe = { resource: Resource; id: string };

/** Reads `--probe-id`; null without it. Throws USAGE without a resource, and for an id that is protected or not safe to send. */
export async function readProbe({ options, config }: Invocation): Promise<Probe | null> {
  const id = options.probeId;
  if (typeof id !== 'string') return null;
  const { resource } = config;
  if (resource === undefined) {
    throw new ExpungeError('USAGE', '--probe-id needs the resource of the object it deletes', {
      next: `add ${resources.map((resource) => `--resource ${resource}`).join(' or ')}`,
    });
  }
  const reject = checkId(id, config);
  if (reject !== null) {
    const next = rejectionMend(reject, [id]) || null;
    throw new ExpungeError('USAGE', `--probe-id: this id is not safe to send (${reject})`, { next });
  }
  await refuseProtected(id, config);
  return { resource, id };
}

/** Protected ids are never deleted, by a probe either. */
async function refuseProtected(id: string, config: Invocation['config']): Promise<void> {
  const protectFile = protectFileOf(config);
  if (protectFile === null) return;
  for await (const ids of readProtected(protectFile, inputOptionsOf(config))) {
    if (ids.includes(id)) throw new ExpungeError('USAGE', `--probe-id: ${config.protect} protects this id`);
  }
}

/** Looks up the host that requests connect to, which is the proxy if there is one. Throws UNREACHABLE. */
export async function lookUpHost({ config, env }: Invocation): Promise<string> {
  const { baseUrl } = readTarget(config, env);
  const { hostname } = new URL(config.proxy ?? baseUrl);
  const who = config.proxy === undefined ? '' : 'the proxy ';
  try {
    return `${who}${hostname} is ${(await lookup(hostname.replace(/^\[|\]$/g, ''))).address}`;
  } catch (error) {
    throw unreachable(`${who}${hostname}`, error);
  }
}

/** Connects without sending a request, and describes the connection and what it leaves untested. Throws UNREACHABLE. */
export async function reachApi(invocation: Invocation, probe: Probe | null): Promise<string> {
  const { config, env } = invocation;
  const { origin, protocol, hostname } = new URL(readTarget(config, env).baseUrl);
  try {
    await reachOrigin(connectionOptions(invocation, readAuthorities(config)));
  } catch (error) {
    throw error instanceof ExpungeError ? error : unreachable(`${origin}${throughProxy(config)}`, error);
  }
  const tls = protocol === 'https:' ? 'with TLS, its certificate is trusted' : 'without TLS';
  const local = protocol === 'http:' && isLoopback(hostname) ? ', on this machine' : '';
  const reached = `connected${throughProxy(config)}, ${tls}${local}`;
  if (probe !== null) return reached;
  return `${reached}. The token was not tested: --probe-id ID tests it by deleting that object`;
}

function throughProxy({ proxy }: Invocation['config']): string {
  return proxy === undefined ? '' : ` through the proxy ${withoutUrlSecrets(proxy)}`;
}

function unreachable(where: string, error: unknown): ExpungeError {
  const { words, next } = explainConnectionError(error);
  return new ExpungeError('UNREACHABLE', `${where}: ${words}`, { cause: error, next });
}

function connectionOptions({ config, env }: Invocation, ca: string | null): TargetConnectionOptions {
  const { origin } = new URL(readTarget(config, env).baseUrl);
  const { requestTimeoutMs, proxy = null, strictConnections } = config;
  return { origin, requestTimeoutMs, ca, proxy, strictConnections };
}

/**
 * Deletes the object of a probe with one request, and evaluates the answer by the verdict table. Nothing is sent while the target is
 * stopped or throttled. The audit trail of the target records the probe.
 */
export async function* sendProbe(
  invocation: Invocation,
  credentials: Credentials,
  probe: Probe,
): AsyncGenerator<Finding & { exit: number }> {
  const target = readTarget(invocation.config, invocation.env);
  yield await withRedis(
    invocation,
    () => {},
    async (session) => {
      const why = await whyNotSent(invocation, session, target);
      if (why !== null) return { ...fail('', `not sent. ${why}`, null), exit: exitCodes.GUARD.exit };
      return send(invocation, session, { target, credentials, probe });
    },
  );
}

/** Why nothing may be sent to the target now, or null. */
async function whyNotSent({ config }: Invocation, { redis }: Session, sentTo: Target): Promise<string | null> {
  const { target } = await readStops(redis, sentTo.fp);
  const stop = target ?? (config.stopFile === undefined ? null : await readStopFile(config.stopFile, Date.now()));
  if (stop !== null) return stopAdvice(stop, commandFor('start-all', sentTo));
  const held = (await readTargetState(redis, sentTo.fp)).find(({ hold }) => hold !== null)?.hold;
  return held ? `${held.reason}; ${duration(held.leftMs)} left` : null;
}

type Sending = { target: Target; credentials: Credentials; probe: Probe };

/** The audit entry is written before the request: after a crash it shows that the request may have been sent. */
async function send(invocation: Invocation, { redis }: Session, { target, credentials, probe }: Sending) {
  const path = idPath(probe.resource, probe.id);
  const authorization = credentials.token.authorization();
  if (authorization === null) throw new ExpungeError('UNREACHABLE', `not sent: ${credentials.token.waiting}`);
  const order = {
    at: Date.now(),
    by: 'operator',
    who: whoAmI(invocation.env),
    reason: reasonOf(invocation.options),
  } as const;
  await noteTargetAction(redis, target.fp, { ...order, action: 'probe', what: path });
  const { answer, bodies } = await ask(
    // One request needs no other connection, and on one that stays open a late body is noticed.
    new TargetConnection({ ...connectionOptions(invocation, credentials.ca), strictConnections: false }),
    new URL(target.baseUrl).pathname.replace(/\/$/, '') + path,
    authorization,
  );
  const verdict = verdictOf(answer, false, verdictsWith(invocation.config.onStatus));
  const { words, next, exit } = bodies === 0 ? evaluate(verdict) : evaluateBody(evaluate(verdict), bodies);
  const state = exit !== exitCodes.OK.exit ? 'fail' : next === null ? 'ok' : 'warn';
  return {
    aspect: '',
    state,
    words: `DELETE ${target.baseUrl}${path} ${describeAnswer(answer)}: ${words}${quoteAnswer(answer, state)}`,
    next,
    exit,
  } as const;
}

const lateBodyMs = 500;

/** Sends the request, and after a 204 waits for half a second whether a body comes. `bodies`: how many answers had one. */
async function ask(connection: TargetConnection, path: string, authorization: string) {
  const body = new AbortController();
  const noteBody = () => body.abort();
  try {
    const answer = await new Promise<Answer>((resolve) => {
      connection.send({ path, authorization, maySend: () => true, noteBody }, (answer) => resolve(answer!)); // null only where it may not be sent
    });
    if (answer.kind === 'status' && answer.status === successStatus) await sleepUntilAborted(lateBodyMs, body.signal);
    return { answer, bodies: body.signal.aborted ? 1 : 0 };
  } finally {
    connection.close();
  }
}

function describeAnswer(answer: Answer): string {
  return answer.kind === 'status' ? `was answered ${answer.status}` : `had no answer (${excerptOf(answer)})`;
}

function quoteAnswer(answer: Answer, state: Finding['state']): string {
  const excerpt = answer.kind === 'status' && state === 'fail' ? excerptOf(answer) : '';
  return excerpt && `; it says: ${excerpt}`;
}

type Evaluation = { words: string; next: string | null; exit: number };

/** What this verdict would mean for a run. */
function evaluate(verdict: Verdict): Evaluation {
  const { OK, INCOMPLETE, GUARD, CREDENTIALS, UNREACHABLE } = exitCodes;
  switch (verdict.kind) {
    case 'settle':
      if (verdict.outcome === 'deleted') return { words: 'deleted', next: null, exit: OK.exit };
      if (verdict.outcome === 'absent') return { words: absent, next: nameOneThatIsThere, exit: OK.exit };
      return { words: verdict.outcome, next: seeMeanings, exit: INCOMPLETE.exit };
    case 'credentials':
      return { words: 'the API rejected the token', next: otherToken, exit: CREDENTIALS.exit };
    case 'unreachable':
      return { words: 'not sent', next: 'try again later', exit: UNREACHABLE.exit };
    case 'wait':
    case 'retry': {
      const words = `${verdict.ambiguous ? 'it may have been executed, and ' : ''}a run would try again later`;
      return { words, next: 'try again later', exit: INCOMPLETE.exit };
    }
    case 'halt': {
      const { exit } = verdict.halt === 'target_configuration' ? UNREACHABLE : GUARD;
      return { words: `a run would halt: ${verdict.reason}`, next: seeMeanings, exit };
    }
  }
}

/** The same where the answer had a body, which the API itself is unlikely to send. */
function evaluateBody({ words, exit }: Evaluation, bodies: number): Evaluation {
  return { words: [words, ...describeBodies(bodies)].join('. '), next: verifyBaseUrl, exit };
}

const verifyBaseUrl = 'verify the base URL: a proxy or another server may answer in place of the API';
const absent = 'absent: the object does not exist, or the base URL is wrong';
const nameOneThatIsThere = 'name an object that exists to verify the base URL';
const seeMeanings = 'what each answer means: expunge check --verdicts';
const otherToken = 'use another token, issued for this API';
