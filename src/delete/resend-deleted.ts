import { RunQueue } from '../limiter/fair-scheduler.ts';
import type { DeletedId } from '../lookup/sample-deleted.ts';
import { idPath } from '../model/check-id.ts';
import { definitionOf, type Resource } from '../model/resource.ts';
import { isThrottling } from '../model/status.ts';
import { refusalWords } from '../token/said.ts';
import type { Token } from '../token/token.ts';
import { sleepUntilAborted } from '../wait.ts';
import type { QueuedRequest } from './connection-pool.ts';
import type { TargetSender } from './delete-chunk.ts';
import { toExcerpt } from './delete-id.ts';
import { type Answer, definedVerdict, verdictTable, waitStatuses } from './verdict.ts';

/** The present state of an id that was deleted. `gone`: it is absent; `there`: a success, so this request deleted it, or the API says that for every id. */
export type Resent = { found: 'gone' | 'there' | 'unclear'; words: string };

/** Why sending ended: it was no longer allowed, the token was refused, or the API cannot be reached. */
export type ResendStop = { why: 'stopped' | 'credentials' | 'unreachable'; words: string };

type ResendDeps = {
  sender: TargetSender;
  token: Token;
  basePath: string; // the path of the target's URL, without a slash at its end
  gapMs: number; // from one request to the next at least; 0 = the permits of the target are enough
  /** Aborted by the caller to end sending, with the reason in words. */
  signal: AbortSignal;
  /** Why the target is held, in words for people. */
  holdWords(): string;
  found(id: DeletedId, resent: Resent): void;
};

const atOnce = 4;
const triesMax = 4; // for requests that cannot have been executed

/**
 * Sends the DELETE of deleted ids again, a few at once, with the permits of the target like any run. Here an id is sent a second time only if its
 * first request cannot have been executed, because a later 404 would prove nothing. Returns why it ended early, or null.
 */
export async function resendDeleted(ids: readonly DeletedId[], deps: ResendDeps): Promise<ResendStop | null> {
  const { limits } = deps.sender;
  limits.enter();
  const queue = openQueue();
  const left = [...ids];
  const turn = turns(deps);
  let stop: ResendStop | null = null;
  const work = async () => {
    for (let id = left.shift(); id !== undefined && stop === null; id = left.shift()) {
      const result = await resend(id, queue, { ...deps, turn }, () => stop);
      if ('found' in result) deps.found(id, result);
      else stop ??= result;
    }
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, work));
    return stop;
  } finally {
    limits.leave();
  }
}

/** `stopped`: why another id has ended the whole check, or null. */
async function resend(
  id: DeletedId,
  queue: Queue,
  deps: ResendDeps & { turn: () => Promise<void> },
  stopped: () => ResendStop | null,
): Promise<Resent | ResendStop> {
  const path = deps.basePath + idPath(id.resource, id.id);
  for (let tries = 1; ; ) {
    await deps.turn();
    const answer = await send(path, id.resource, queue, deps);
    const result =
      answer === null ? (stopped() ?? whyStopped(deps)) : resultOf(answer, id.resource, tries >= triesMax, deps.token);
    if (result !== null) return result;
    if (answer === null)
      await sleepUntilAborted(tokenCheckMs, deps.signal); // there is no token yet
    // Throttled requests can be repeated without limit, because the limiter slows down with each.
    else if (answer.kind !== 'status' || !isThrottling(answer.status)) tries += 1;
  }
}

/** Returns a function that waits until the next request may be sent. */
function turns({ gapMs, signal }: Pick<ResendDeps, 'gapMs' | 'signal'>): () => Promise<void> {
  let nextMs = Number.NEGATIVE_INFINITY;
  return async () => {
    const now = performance.now();
    const at = Math.max(now, nextMs);
    nextMs = at + gapMs;
    if (at > now) await sleepUntilAborted(at - now, signal);
  };
}

/** Null: it may be sent again, because the request cannot have been executed. */
function resultOf(answer: Answer, resource: Resource, isLast: boolean, token: Token): Resent | ResendStop | null {
  if (answer.kind === 'maybe-sent') return { found: 'unclear', words: `no answer (${toExcerpt(answer)})` };
  if (answer.kind === 'not-sent')
    return isLast ? { why: 'unreachable', words: `the API cannot be reached (${toExcerpt(answer)})` } : null;
  const verdict = definedVerdict(answer, resource);
  const outcome = verdict.kind === 'settle' ? verdict.outcome : null;
  if (outcome === 'deleted') return { found: 'there', words: `answered ${answer.status} again` };
  if (outcome === 'absent') return { found: 'gone', words: `answered ${answer.status}` };
  if (verdict.kind === 'credentials') {
    const next = token.refused(answer.authorization, refusalWords(answer));
    if (typeof next !== 'string') return { why: 'credentials', words: next.halt };
    return isLast ? { why: 'credentials', words: refused } : null;
  }
  if (isThrottling(answer.status)) return null;
  const excerpt = toExcerpt(answer);
  return { found: 'unclear', words: `answered ${answer.status}${excerpt && `: ${excerpt}`}` };
}

const refused = 'the API rejected the token';
const tokenCheckMs = 200;

function whyStopped({ sender, signal, holdWords }: ResendDeps): ResendStop | null {
  if (signal.aborted) return { why: 'stopped', words: String(signal.reason) };
  return sender.limits.isStopped ? { why: 'stopped', words: holdWords() } : null;
}

type Queue = RunQueue<QueuedRequest>;

function openQueue(): Queue {
  return new RunQueue<QueuedRequest>({
    permits: () => null,
    stillWants: (request, nowMs) => {
      const authorization = request.authorize(nowMs);
      if (authorization === null) request.answered(null, 0);
      else request.authorization = authorization;
      return authorization !== null;
    },
  });
}

const throttling = waitStatuses(verdictTable);

/** Returns the answer, or null if sending is no longer allowed. */
function send(path: string, resource: Resource, queue: Queue, deps: ResendDeps): Promise<Answer | null> {
  const { connections, limits } = deps.sender;
  const maySend = () => !deps.signal.aborted && !limits.isStopped;
  return new Promise((answered) => {
    connections.submit(queue, {
      path,
      form: definitionOf(resource),
      authorization: '',
      waitStatuses: throttling,
      hasFailed: false,
      maySend,
      noteBody: () => {},
      authorize: () => (maySend() ? deps.token.authorization() : null),
      answered,
    });
  });
}
