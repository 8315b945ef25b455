import { randomUUID } from 'node:crypto';
import { readTarget } from '../../config/check-target.ts';
import { type Answer, definedVerdict } from '../../delete/verdict.ts';
import { ExpungeError, exitCodes } from '../../errors.ts';
import { plural } from '../../format.ts';
import { describeBodies } from '../../ledger/bodies.ts';
import { storeSemantics } from '../../ledger/semantics.ts';
import { idPath } from '../../model/check-id.ts';
import { resources } from '../../model/resource.ts';
import { describeSemantics, type Semantics } from '../../model/semantics.ts';
import type { Target } from '../../model/target.ts';
import { type Session, withRedis } from '../../operations/session.ts';
import { type Finding, fail } from '../../redis/server.ts';
import type { Invocation } from '../command.ts';
import type { Credentials } from '../credentials.ts';
import { describeAnswer, type OneObject, quoteAnswer, sendDelete, whyNotSent } from '../one-request.ts';
import { askCount, askHost, whoAmI } from '../session.ts';
import { evaluate, readObject } from './check-api.ts';

/**
 * The objects of `--semantics`, which cannot exist: one of `--resource`, or one of each resource. Empty without that flag. Throws USAGE for
 * `--absent-id` alone, and for an id that is protected, not safe to send, or has no resource: it may be the id of something else.
 */
export async function readAbsent(invocation: Invocation): Promise<OneObject[]> {
  const { options, config } = invocation;
  const { semantics, absentId } = options;
  if (!semantics && absentId === undefined) return [];
  if (!semantics) throw new ExpungeError('USAGE', '--absent-id is for --semantics', { next: 'add --semantics' });
  if (absentId !== undefined) return [await readObject(invocation, '--absent-id', absentId)];
  const asked = config.resource === undefined ? resources : [config.resource];
  return asked.map((resource) => ({ resource, id: randomUUID() }));
}

type Found = Finding & { exit: number };

/**
 * Sends the DELETEs of objects that cannot exist, after a confirmation and one by one, and reports what the answers of runs prove. Stores that for
 * the target, unless the answer says neither that they are deleted nor that they are absent. Nothing is sent while the target is stopped or throttled.
 */
export async function* checkSemantics(
  invocation: Invocation,
  credentials: Credentials,
  absent: readonly OneObject[],
): AsyncGenerator<Found> {
  const target = readTarget(invocation.config, invocation.env);
  yield* await withRedis(
    invocation,
    () => {},
    async (session) => {
      const closed = await findClosed(invocation, session, target);
      if (closed !== null) return [closed];
      await confirm(invocation, target, absent);
      const found: Found[] = [];
      for (const object of absent) {
        // The person may have taken long to confirm, and the target may be stopped between two requests.
        const closedSince = await findClosed(invocation, session, target);
        if (closedSince !== null) return [...found, closedSince];
        found.push(await checkOne(invocation, session, { target, credentials, object }));
      }
      return found;
    },
  );
}

/** Why sending is not allowed now; null = it is allowed. */
async function findClosed(invocation: Invocation, session: Session, target: Target): Promise<Found | null> {
  const why = await whyNotSent(invocation, session, target);
  return why === null ? null : { ...fail('', `not sent. ${why}`, null), exit: exitCodes.GUARD.exit };
}

/** Shows what is sent also with --yes, because these requests belong to no list. */
async function confirm(invocation: Invocation, target: Target, absent: readonly OneObject[]): Promise<void> {
  const { baseUrl } = target;
  for (const { resource, id } of absent) invocation.stderr.write(`Sends DELETE ${baseUrl}${idPath(resource, id)}\n`);
  const what = `${plural(absent.length, 'requests')} for what should not exist on ${new URL(baseUrl).host}`;
  await askCount(invocation, absent.length, what, 'send');
  await askHost(invocation, target);
}

type Asking = { target: Target; credentials: Credentials; object: OneObject };

async function checkOne(invocation: Invocation, session: Session, asking: Asking): Promise<Found> {
  const { target, object } = asking;
  const { answer, bodies } = await sendDelete(invocation, session, { ...asking, action: 'semantics' });
  const sent = `DELETE ${target.baseUrl}${idPath(object.resource, object.id)} ${describeAnswer(answer)}`;
  const answers = answersOf(object, answer);
  if (answers === null) return inconclusive(object, sent, answer);
  const { status } = answer as Answer & { kind: 'status' };
  const known = { resource: object.resource, answers, status, at: Date.now(), who: whoAmI(invocation.env) } as const;
  await storeSemantics(session.redis, target.fp, known);
  const isClear = answers === 'gone' && bodies === 0;
  return {
    aspect: object.resource,
    state: isClear ? 'ok' : 'warn',
    words: [`${sent}: ${meaningOf(known)}`, ...describeBodies(bodies)].join('. '),
    next: isClear
      ? null
      : 'compare some deleted ids with the API itself: no answer of it proves that an object is gone',
    exit: exitCodes.OK.exit,
  };
}

/** The meaning of the answer itself, regardless of `--on-status`; null if it proves nothing. */
function answersOf({ resource }: OneObject, answer: Answer): Semantics['answers'] | null {
  const verdict = definedVerdict(answer, resource);
  if (verdict.kind !== 'settle') return null;
  if (verdict.outcome === 'deleted') return 'accepted';
  return verdict.outcome === 'absent' ? 'gone' : null;
}

function meaningOf(known: Semantics): string {
  return describeSemantics([known])[0] ?? `it says so if ${known.resource} do not exist: deleted means deleted`;
}

function inconclusive({ resource }: OneObject, sent: string, answer: Answer): Found {
  const { words, exit } = evaluate(definedVerdict(answer, resource));
  return {
    ...fail(resource, `${sent}: inconclusive (${words}), nothing is remembered${quoteAnswer(answer)}`, useOtherId),
    exit,
  };
}

const useOtherId = 'if the API refuses ids of this form, name one of yours that does not exist: --absent-id ID';
