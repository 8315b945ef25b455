import { readTarget } from '../config/check-target.ts';
import { toExcerpt } from '../delete/delete-id.ts';
import { TargetConnection, type TargetConnectionOptions } from '../delete/send-delete.ts';
import type { Answer } from '../delete/verdict.ts';
import { ExpungeError } from '../errors.ts';
import { duration } from '../format.ts';
import { noteTargetAction } from '../ledger/audit.ts';
import { readTargetState } from '../limiter/read-target.ts';
import { readStops, stopAdvice } from '../limiter/stop.ts';
import { idPath } from '../model/check-id.ts';
import { definitionOf, type RequestForm, type Resource } from '../model/resource.ts';
import { successStatus } from '../model/status.ts';
import { commandFor, type Target } from '../model/target.ts';
import type { Session } from '../operations/session.ts';
import { sleepUntilAborted } from '../wait.ts';
import { readStopFile } from '../worker/stop-file.ts';
import { type Invocation, readReason } from './command.ts';
import type { Certificates, Credentials } from './credentials.ts';
import { whoAmI } from './session.ts';

// Single requests that `check` sends on demand, outside of any run.

/** The object of such a request. */
export type OneObject = { resource: Resource; id: string };

/** How to connect to the API, from the settings. */
export function connectionOptions(
  { config, env }: Invocation,
  { ca, identity }: Certificates,
): TargetConnectionOptions {
  const { origin } = new URL(readTarget(config, env).baseUrl);
  const { requestTimeoutMs, proxy = null } = config;
  return { origin, requestTimeoutMs, ca, identity, proxy };
}

/** The reason why sending to the target is not allowed now, or null. */
export async function whyNotSent(
  { config, toType }: Invocation,
  { redis }: Session,
  sentTo: Target,
): Promise<string | null> {
  const { target } = await readStops(redis, sentTo.fp);
  const stop = target ?? (config.stopFile === undefined ? null : await readStopFile(config.stopFile, Date.now()));
  if (stop !== null) return stopAdvice(stop, commandFor(toType, 'start-all', sentTo));
  const held = (await readTargetState(redis, sentTo.fp))?.hold;
  return held ? `${held.reason}; ${duration(held.leftMs)} left` : null;
}

/**
 * Sends the DELETE of one object, once. `bodies`: number of answers that were a 204 with a body. Writes to the target's audit trail before sending:
 * after a crash the entry shows that the request may have been sent. Throws UNREACHABLE without a token.
 */
export async function sendDelete(
  invocation: Invocation,
  { redis }: Session,
  {
    target,
    credentials,
    object,
    action,
  }: { target: Target; credentials: Credentials; object: OneObject; action: string },
): Promise<{ answer: Answer; bodies: number }> {
  const path = idPath(object.resource, object.id);
  const authorization = credentials.token.authorization();
  if (authorization === null) throw new ExpungeError('UNREACHABLE', `not sent: ${credentials.token.waiting}`);
  const author = { at: Date.now(), who: whoAmI(invocation.env), reason: readReason(invocation.options) };
  await noteTargetAction(redis, target.fp, { ...author, by: 'operator', action, what: path });
  return ask(
    new TargetConnection(connectionOptions(invocation, credentials)),
    new URL(target.baseUrl).pathname.replace(/\/$/, '') + path,
    { authorization, form: definitionOf(object.resource) },
  );
}

const lateBodyMs = 500;

/** Sends the request, and after a 204 waits half a second for a body. */
async function ask(connection: TargetConnection, path: string, sent: { authorization: string; form: RequestForm }) {
  const body = new AbortController();
  const noteBody = () => body.abort();
  try {
    const answer = await new Promise<Answer>((resolve) => {
      connection.send({ path, ...sent, maySend: () => true, noteBody }, (answer) => resolve(answer!)); // null only if sending is not allowed
    });
    if (answer.kind === 'status' && answer.status === successStatus) await sleepUntilAborted(lateBodyMs, body.signal);
    return { answer, bodies: body.signal.aborted ? 1 : 0 };
  } finally {
    connection.close();
  }
}

/** The answer in words: `was answered 404`. */
export function describeAnswer(answer: Answer): string {
  return answer.kind === 'status' ? `was answered ${answer.status}` : `had no answer (${toExcerpt(answer)})`;
}

/** The answer's own words, to append; '' if there are none. */
export function quoteAnswer(answer: Answer): string {
  const excerpt = answer.kind === 'status' ? toExcerpt(answer) : '';
  return excerpt && `; it says: ${excerpt}`;
}
