import { lookup } from 'node:dns/promises';
import { readTarget } from '../../config/check-target.ts';
import { isLoopback, withoutUrlSecrets } from '../../config/parse-url.ts';
import { reachOrigin } from '../../delete/send-delete.ts';
import { makeVerdictTable, type Verdict, verdictOf } from '../../delete/verdict.ts';
import { ExpungeError, exitCodes } from '../../errors.ts';
import { toInputOptions } from '../../input/input-options.ts';
import { readProtected, toProtectFile } from '../../input/read-protected.ts';
import { describeBodies } from '../../ledger/bodies.ts';
import { checkId, idPath } from '../../model/check-id.ts';
import { definitionOf, resources } from '../../model/resource.ts';
import { rejectionMend } from '../../model/row.ts';
import type { Target } from '../../model/target.ts';
import type { Advice } from '../../model/to-type.ts';
import { type Session, withRedis } from '../../operations/session.ts';
import { type Finding, fail } from '../../redis/server.ts';
import { explainConnectionError } from '../../system-errors.ts';
import type { Invocation } from '../command.ts';
import { type Credentials, readApiCertificates } from '../credentials.ts';
import {
  connectionOptions,
  describeAnswer,
  type OneObject,
  quoteAnswer,
  sendDelete,
  whyNotSent,
} from '../one-request.ts';
import { askHost } from '../session.ts';

/** Reads `--probe-id`; null without it. Throws USAGE like `readObject`. */
export async function readProbe(invocation: Invocation): Promise<OneObject | null> {
  const id = invocation.options.probeId;
  return typeof id === 'string' ? readObject(invocation, '--probe-id', id) : null;
}

/** The object with this id, named by an option. Throws USAGE without a resource, and for an id that is protected or not safe to send. */
export async function readObject({ config }: Invocation, flag: string, id: string): Promise<OneObject> {
  const { resource } = config;
  if (resource === undefined) {
    throw new ExpungeError('USAGE', `${flag} needs the resource of the object it deletes`, {
      next: `add ${resources.map((resource) => `--resource ${resource}`).join(' or ')}`,
    });
  }
  const reject = checkId(id, config);
  if (reject !== null) {
    const next = rejectionMend(reject, [id]) || null;
    throw new ExpungeError('USAGE', `${flag}: this id is not safe to send (${reject})`, { next });
  }
  await refuseProtectedId(flag, id, config);
  return { resource, id };
}

/** Throws for a protected id: not even a check deletes one. */
async function refuseProtectedId(flag: string, id: string, config: Invocation['config']): Promise<void> {
  const protectFile = toProtectFile(config);
  if (protectFile === null) return;
  for await (const ids of readProtected(protectFile, toInputOptions(config))) {
    if (ids.includes(id)) throw new ExpungeError('USAGE', `${flag}: ${config.protect} protects this id`);
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
export async function reachApi(invocation: Invocation, sendsRequest: boolean): Promise<string> {
  const { config, env } = invocation;
  const { origin, protocol, hostname } = new URL(readTarget(config, env).baseUrl);
  try {
    await reachOrigin(connectionOptions(invocation, readApiCertificates(config)));
  } catch (error) {
    throw error instanceof ExpungeError ? error : unreachable(`${origin}${throughProxy(config)}`, error);
  }
  const tls = protocol === 'https:' ? 'with TLS, its certificate is trusted' : 'without TLS';
  const local = protocol === 'http:' && isLoopback(hostname) ? ', on this machine' : '';
  const reached = `connected${throughProxy(config)}, ${tls}${local}`;
  if (sendsRequest) return reached;
  return `${reached}. The token was not tested: --probe-id ID tests it by deleting that object`;
}

function throughProxy({ proxy }: Invocation['config']): string {
  return proxy === undefined ? '' : ` through the proxy ${withoutUrlSecrets(proxy)}`;
}

function unreachable(where: string, error: unknown): ExpungeError {
  const { words, next } = explainConnectionError(error);
  return new ExpungeError('UNREACHABLE', `${where}: ${words}`, { cause: error, next });
}

/**
 * Deletes the object of a probe with one request, after the host of a protected target was typed, and evaluates the answer by the verdict table.
 * Nothing is sent while the target is stopped or throttled. The audit trail of the target records the probe.
 */
export async function* sendProbe(
  invocation: Invocation,
  credentials: Credentials,
  probe: OneObject,
): AsyncGenerator<Finding & { exit: number }> {
  const target = readTarget(invocation.config, invocation.env);
  await askHost(invocation, target);
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

type Sending = { target: Target; credentials: Credentials; probe: OneObject };

async function send(invocation: Invocation, session: Session, { target, credentials, probe }: Sending) {
  const sent = await sendDelete(invocation, session, { target, credentials, object: probe, action: 'probe' });
  const { answer, bodies } = sent;
  const verdict = verdictOf(answer, false, makeVerdictTable(invocation.config.onStatus, definitionOf(probe.resource)));
  const { words, next, exit } = bodies === 0 ? evaluate(verdict) : evaluateBody(evaluate(verdict), bodies);
  const state = exit !== exitCodes.OK.exit ? 'fail' : next === null ? 'ok' : 'warn';
  const path = idPath(probe.resource, probe.id);
  const quote = state === 'fail' ? quoteAnswer(answer) : '';
  return {
    aspect: '',
    state,
    words: `DELETE ${target.baseUrl}${path} ${describeAnswer(answer)}: ${words}${quote}`,
    next,
    exit,
  } as const;
}

export type Evaluation = { words: string; next: Advice | null; exit: number };

/** The consequence that this verdict would have in a run. */
export function evaluate(verdict: Verdict): Evaluation {
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

/** The evaluation if the answer had a body, which the API itself is unlikely to send. */
function evaluateBody({ words, exit }: Evaluation, bodies: number): Evaluation {
  return { words: [words, ...describeBodies(bodies)].join('. '), next: verifyBaseUrl, exit };
}

const verifyBaseUrl = 'verify the base URL: a proxy or another server may answer in place of the API';
const absent = 'absent: the object does not exist, or the base URL is wrong';
const nameOneThatIsThere = 'name an object that exists to verify the base URL';
const seeMeanings: Advice = (toType) => `what each answer means: ${toType('check', '--verdicts')}`;
const otherToken = 'use another token, issued for this API';
