import { setTimeout as sleep } from 'node:timers/promises';
import { buildConnector, Client, type Dispatcher, ProxyAgent } from 'undici';
import { lookUpName } from '../http/known-names.ts';
import { hasAdvice } from '../http/rate-headers.ts';
import type { HeaderFields } from '../http/retry-after.ts';
import type { RequestForm } from '../model/resource.ts';
import { successStatus } from '../model/status.ts';
import { wantsCertificate } from '../system-errors.ts';
import { userAgent } from '../version.ts';
import { announcesBody, isSurplus } from './surplus.ts';
import { type Answer, headersTooLarge, noContent, onlyHttp2, unaskedContinue } from './verdict.ts';

export type TargetConnectionOptions = {
  origin: string;
  requestTimeoutMs: number;
  ca: string | null;
  /** Our own certificate and its key, for an API that wants one. */
  identity?: Identity | null;
  proxy: string | null;
};

/** A certificate and its key, in PEM. */
export type Identity = { cert: string; key: string };

/** A DELETE to be sent. */
export type TargetRequest = {
  path: string;
  /** The token as `Bearer TOKEN`. `form`: where it goes, and the fixed headers. */
  authorization: string;
  form: RequestForm;
  /** Whether it may still be sent. Called just before it is written, as it may have waited seconds for its connection. */
  maySend(): boolean;
  /** Called when its 204 turns out to have a body: at once if its headers announce a body, otherwise when the bytes come, even after `done`. */
  noteBody(): void;
};

/** Called once. Null: when the connection was ready, the request was no longer allowed, and it was not written. */
type Done = (answer: Answer | null) => void;

/**
 * One connection, which carries one DELETE at a time. A pool of these is cheaper than the pool of undici, and a broken connection puts one id in
 * doubt. States: open → closed; in between it reconnects by itself.
 */
export class TargetConnection {
  readonly #options: TargetConnectionOptions;
  #dispatcher: Client | ProxyAgent;
  #exchange: Exchange | null = null;
  #previous: Exchange | null = null; // on the same socket
  #isOneEach = false; // whether each request gets a socket of its own
  #deadline: NodeJS.Timeout | null = null;
  #expiresAt = 0;
  #headers: string[] = [];
  #headersFor = ''; // the token and the form of these headers
  #headersIn: RequestForm | null = null;

  constructor(options: TargetConnectionOptions) {
    this.#options = options;
    this.#dispatcher = this.#openDispatcher();
  }

  /**
   * Sends one DELETE; never throws. `done` is called exactly once, at the latest when the request timeout has passed. Call `send` again only after
   * that.
   */
  send(request: TargetRequest, done: Done): void {
    const { origin } = this.#options;
    const { path } = request;
    this.#previous = this.#exchange;
    this.#exchange = new Exchange(request, done);
    this.#startDeadline();
    this.#dispatcher.dispatch(
      { origin, path, method: 'DELETE', headers: this.#headersOf(request), reset: this.#isOneEach },
      this.#exchange,
    );
  }

  /** The same array as long as the token and the form are the same, which saves one allocation per request. */
  #headersOf({ authorization, form }: TargetRequest): string[] {
    if (this.#headersFor !== authorization || this.#headersIn !== form) {
      [this.#headersFor, this.#headersIn] = [authorization, form];
      this.#headers = formHeaders(authorization, form);
    }
    return this.#headers;
  }

  /** Drops the connection. A request on it ends as `maybe-sent`, or as `not-sent` if it was never written. */
  close(): void {
    if (this.#deadline) clearTimeout(this.#deadline);
    this.#dispatcher.destroy().catch(() => {});
  }

  // A timer of our own: undici's timeouts are up to a second late, and an AbortSignal does nothing while a request waits for its connection. There is
  // one timer per connection. When it fires, it waits for the rest of the present request's time, which costs almost nothing.
  #startDeadline(): void {
    const { requestTimeoutMs } = this.#options;
    this.#expiresAt = performance.now() + requestTimeoutMs;
    this.#deadline ??= setTimeout(() => this.#checkDeadline(), requestTimeoutMs);
  }

  #checkDeadline(): void {
    this.#deadline = null;
    if (this.#exchange === null || this.#exchange.isOver) return;
    const leftMs = this.#expiresAt - performance.now();
    if (leftMs > 0) this.#deadline = setTimeout(() => this.#checkDeadline(), Math.ceil(leftMs));
    else this.#expire(this.#exchange);
  }

  #expire(exchange: Exchange): void {
    if (exchange.isWritten) {
      exchange.expire();
      return;
    }
    // The request still waits for its connection: drop both. The new dispatcher comes first, because the next request may come at once.
    const abandoned = this.#dispatcher;
    this.#dispatcher = this.#openDispatcher();
    exchange.expire();
    abandoned.destroy().catch(() => {});
  }

  #openDispatcher(): Client | ProxyAgent {
    const dispatcher = openDispatcher(this.#options, (error) => {
      if (dispatcher === this.#dispatcher) this.#leaveSocket(error);
    });
    return dispatcher;
  }

  /** Leaves the closed socket: the next request gets another one. A body may have closed it; see surplus.ts. */
  #leaveSocket(error: Error): void {
    const isIdle = this.#exchange === null || this.#exchange.isOver;
    const answered = isIdle ? this.#exchange : this.#previous;
    const isWaiting = !isIdle && this.#exchange!.isWritten;
    if (answered?.isNoContent && isSurplus(error, isWaiting)) {
      this.#isOneEach ||= isWaiting;
      answered.noteBody();
    }
    this.#previous = null;
    if (isIdle) this.#exchange = null;
  }
}

const certificateAlertMs = 200;

/**
 * Connects as for a request, through the proxy and with TLS, and sends nothing. Throws the error of the connection, or an error with the code
 * CONNECT_TIMEOUT. It makes an OPTIONS request to connect, and stops that request before it is written; see `Exchange`. With TLS 1.3 a server refuses
 * our certificate when we are connected already, so it waits a moment for that.
 */
export async function reachOrigin(options: TargetConnectionOptions): Promise<void> {
  const closed: Error[] = [];
  const dispatcher = openDispatcher(options, (error) => void closed.push(error));
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const late = Object.assign(new Error('no connection in time'), { code: 'CONNECT_TIMEOUT' });
      timer = setTimeout(reject, options.requestTimeoutMs, late);
      dispatcher.dispatch(
        { origin: options.origin, path: '/', method: 'OPTIONS' },
        {
          onRequestStart() {
            resolve();
            throw new Error('only the connection is tested');
          },
          onResponseStart() {},
          onResponseData() {},
          onResponseEnd() {},
          onResponseError: (_controller, error) => reject(error), // without effect once the promise is resolved
        },
      );
    });
    if (options.origin.startsWith('https:')) await sleep(certificateAlertMs);
    const refusal = closed.find((error) => wantsCertificate(codeOf(error)));
    if (refusal !== undefined) throw refusal.cause ?? refusal;
  } finally {
    clearTimeout(timer);
    await dispatcher.destroy();
  }
}

/** The headers of a request, names and values in turn. A fixed header takes precedence over ours. */
function formHeaders(authorization: string, { auth, headers }: RequestForm): string[] {
  const token = authorization.replace(/^Bearer /, '');
  const fixed = { 'user-agent': userAgent, ...headers };
  return [auth.header, auth.scheme === '' ? token : `${auth.scheme} ${token}`, ...Object.entries(fixed).flat()];
}

const maxHeaderSize = 65_536; // bytes; a larger answer leaves its id in doubt

/** `closed`: called with the reason when a socket to the target is closed. */
function openDispatcher(
  { origin, ca, identity, proxy, requestTimeoutMs }: TargetConnectionOptions,
  closed: (error: Error) => void = () => {},
): Client | ProxyAgent {
  const openClient = (url: string | URL, { connect, ...options }: Client.Options) =>
    new Client(url, { ...options, connect: keepingErrors(connect) }).on('disconnect', (_origin, _clients, error) =>
      closed(error),
    );
  const timeout = Math.min(5_000, requestTimeoutMs);
  const tls = { timeout, lookup: lookUpName, ...(ca === null ? {} : { ca }), ...identity };
  // HTTP/1.1 on purpose: one request per connection, and the library replays nothing by itself.
  const shared = { allowH2: false, headersTimeout: 0, bodyTimeout: 0, connect: tls, maxHeaderSize };
  if (proxy === null) return openClient(origin, shared);
  return new ProxyAgent({
    ...shared,
    uri: proxy,
    requestTls: tls,
    proxyTls: { lookup: lookUpName },
    connections: 1,
    proxyTunnel: true,
    factory: openClient,
  });
}

/**
 * A connector that keeps what a socket reported first. When a server sends a TLS alert and closes, undici reports the end of the socket only. The alert
 * becomes its cause.
 */
function keepingErrors(connect: Client.Options['connect']): buildConnector.connector {
  const connector = typeof connect === 'function' ? connect : buildConnector({ ...connect, allowH2: false });
  return (options, done) =>
    connector(options, (...made) => {
      const [, socket] = made;
      let first: Error | null = null;
      socket?.on('error', (error: Error) => {
        if (first === null) first = error;
        else error.cause ??= first;
      });
      done(...made);
    });
}

const bodyKept = 2_048;
const bodyRead = 65_536;

type Controller = Pick<Dispatcher.DispatchController, 'abort'>;

/**
 * One request and its answer. States: waiting (for its connection) → written → answered; or waiting → forbidden, if it may no longer be sent.
 *
 * One hook decides whether the request may have been executed. Before `onRequestStart` it was never written. After that, without a status, it may
 * have been executed. Error codes do not decide it, because the same codes occur before and after. The one exception is a server that breaks off the
 * TLS handshake because of our certificate: with TLS 1.3 that arrives after the request was written, but no server has read the request.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #request: TargetRequest;
  readonly #authorization: string;
  #done: Done | null;
  #controller: Controller | null = null;
  #timedOut = false;
  #isForbidden = false;
  #status = 0;
  #headers: HeaderFields = {};
  #body: Buffer[] | null = null;
  #bodyBytes = 0;

  /** `done` is called exactly once. */
  constructor(request: TargetRequest, done: Done) {
    this.#request = request;
    this.#authorization = request.authorization;
    this.#done = done;
  }

  get isOver(): boolean {
    return this.#done === null;
  }

  /** Whether the request is being written or was written: from then on it may be executed. */
  get isWritten(): boolean {
    return this.#controller !== null;
  }

  /** Whether its answer was a 204. */
  get isNoContent(): boolean {
    return this.#status === successStatus;
  }

  /** Its 204 has a body. */
  noteBody(): void {
    this.#request.noteBody();
  }

  /** Expires the request after its timeout: if it still waits for its connection, it is never written. */
  expire(): void {
    this.#timedOut = true;
    if (this.#controller === null) this.#settle({ kind: 'not-sent', why: 'CONNECT_TIMEOUT' });
    else this.#controller.abort(new Error('deadline'));
  }

  onRequestStart(controller: Controller): void {
    // Throwing here prevents the request from being written.
    if (this.#done === null) throw new Error('timed out before it was sent');
    this.#isForbidden = !this.#request.maySend();
    if (this.#isForbidden) throw new Error('no longer allowed when its connection was there');
    this.#controller = controller;
  }

  onResponseStart(_controller: Controller, status: number, headers: HeaderFields): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = headers;
    if (status === successStatus && announcesBody(headers)) this.noteBody();
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#body ??= [];
    if (this.#bodyBytes < bodyKept) this.#body.push(Buffer.from(chunk.subarray(0, bodyKept - this.#bodyBytes)));
    this.#bodyBytes += chunk.length;
    if (this.#bodyBytes > bodyRead) controller.abort(new Error('body too large'));
  }

  onResponseEnd(): void {
    this.#settle(this.#answer());
  }

  onResponseError(_controller: Controller | null, error: Error): void {
    const answer = this.#answerTo(error);
    // Not synchronously: undici is still resetting this connection, and the receiver of the answer sends the next request on it.
    queueMicrotask(() => this.#settle(answer));
  }

  #answerTo(error: Error): Answer | null {
    if (this.#isForbidden) return null;
    if (this.#status > 0) return this.#answer(this.#bodyBytes <= bodyRead);
    const why = codeOf(error);
    const isBeforeHttp = this.#controller === null || wantsCertificate(why);
    return isBeforeHttp ? { kind: 'not-sent', why } : maybeSent(error, this.#timedOut);
  }

  #settle(answer: Answer | null): void {
    const done = this.#done;
    this.#done = null;
    done?.(answer);
  }

  /** `isCutOff`: its end never came, and not because more of it was not wanted. */
  #answer(isCutOff = false): Answer {
    if (this.#status === successStatus && !hasAdvice(this.#headers)) return noContent;
    const [status, headers, authorization] = [this.#status, this.#headers, this.#authorization];
    const body = Buffer.concat(this.#body ?? []).toString('utf8');
    return isCutOff
      ? { kind: 'status', status, headers, body, authorization, isCutOff }
      : { kind: 'status', status, headers, body, authorization };
  }
}

function maybeSent(error: Error, timedOut: boolean): Answer {
  if (timedOut) return { kind: 'maybe-sent', code: 'timeout', why: 'no answer in time' };
  const why = protocolProblem(error) ?? codeOf(error);
  const isProtocol = error.name === 'HTTPParserError' || why === headersTooLarge || why === unaskedContinue;
  return { kind: 'maybe-sent', code: isProtocol ? 'protocol' : 'reset', why };
}

/** Why undici could not read an answer, if it says so only in words or bytes; null for any other error. */
function protocolProblem({ name, message, data }: Error & { data?: unknown }): string | null {
  if (name === 'SocketError' && message === 'bad response') return unaskedContinue;
  // The first frame of a server that speaks HTTP/2: a length of three bytes, then the type SETTINGS.
  const isSettings =
    name === 'HTTPParserError' && typeof data === 'string' && data.startsWith('\0\0') && data[3] === '\x04';
  return isSettings ? onlyHttp2 : null;
}

/** The system's code of an error. For an error that wraps others (every address of a name failed), the code of the first. */
function codeOf(error: Error & { code?: string; errors?: Error[] }): string {
  const inner = error.errors?.[0] ?? error.cause;
  const isVague = error.code === undefined || error.code === 'UND_ERR' || error.code === 'UND_ERR_SOCKET';
  return isVague && inner instanceof Error ? codeOf(inner) : (error.code ?? error.name);
}
