import type { Dispatcher } from 'undici';
import { hasAdvice } from '../http/rate-headers.ts';
import type { HeaderFields } from '../limiter/header-fields.ts';
import { type Answer, noContent } from './answer.ts';

const bodyKept = 2_048;
const bodyRead = 65_536;

type Controller = Pick<Dispatcher.DispatchController, 'abort'>;

/**
 * One request and its answer. States: waiting (for its connection) → written → answered.
 *
 * Whether the request may have been executed is decided by one hook: as long as `onRequestStart` was not called it was never
 * written; after that and without a status, it may have been. Error codes cannot tell: the same ones occur on both sides.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #authorization: string;
  #done: ((answer: Answer) => void) | null;
  #controller: Controller | null = null;
  #timedOut = false;
  #status = 0;
  #headers: HeaderFields = {};
  #body: Buffer[] | null = null;
  #seen = 0;

  /** `done` is called exactly once. */
  constructor(authorization: string, done: (answer: Answer) => void) {
    this.#authorization = authorization;
    this.#done = done;
  }

  get isOver(): boolean {
    return this.#done === null;
  }

  /** Whether the request has begun to leave: from then on it may be executed. */
  get isWritten(): boolean {
    return this.#controller !== null;
  }

  /** The deadline has passed: a request that still waits for its connection can't be written any more. */
  expire(): void {
    this.#timedOut = true;
    if (this.#controller === null) this.#settle({ kind: 'not-sent', why: 'CONNECT_TIMEOUT' });
    else this.#controller.abort(new Error('deadline'));
  }

  onRequestStart(controller: Controller): void {
    // Throwing here is how a request is kept from being written.
    if (this.#done === null) throw new Error('given up');
    this.#controller = controller;
  }

  onResponseStart(_controller: Controller, status: number, headers: HeaderFields): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#body ??= [];
    if (this.#seen < bodyKept) this.#body.push(Buffer.from(chunk.subarray(0, bodyKept - this.#seen)));
    this.#seen += chunk.length;
    if (this.#seen > bodyRead) controller.abort(new Error('body too large'));
  }

  onResponseEnd(): void {
    this.#settle(this.#answer());
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    const answer = this.#answerTo(error);
    // Not from inside: undici is still clearing this connection, and whoever hears of the answer sends the next request on it.
    queueMicrotask(() => this.#settle(answer));
  }

  #answerTo(error: Error): Answer {
    if (this.#status > 0) return this.#answer();
    if (this.#controller !== null) return maybeSent(error, this.#timedOut);
    return { kind: 'not-sent', why: codeOf(error) };
  }

  #settle(answer: Answer): void {
    const done = this.#done;
    this.#done = null;
    done?.(answer);
  }

  #answer(): Answer {
    if (this.#status === 204 && !hasAdvice(this.#headers)) return noContent;
    const body = Buffer.concat(this.#body ?? []).toString('utf8');
    return { kind: 'status', status: this.#status, headers: this.#headers, body, authorization: this.#authorization };
  }
}

function maybeSent(error: Error, timedOut: boolean): Answer {
  const why = codeOf(error);
  if (timedOut) return { kind: 'maybe-sent', code: 'timeout', why: 'no answer in time' };
  const isProtocol = error.name === 'HTTPParserError' || why === 'UND_ERR_HEADERS_OVERFLOW';
  return { kind: 'maybe-sent', code: isProtocol ? 'protocol' : 'reset', why };
}

/** The system's code; of an error that wraps others (every address of a name failed) the first of theirs. */
function codeOf(error: Error & { code?: string; errors?: Error[] }): string {
  const inner = error.errors?.[0] ?? error.cause;
  if (error.code !== undefined && error.code !== 'UND_ERR') return error.code;
  return inner instanceof Error ? codeOf(inner) : error.name;
}
