import { Client, ProxyAgent } from 'undici';
import type { Answer } from './answer.ts';
import { Exchange } from './exchange.ts';

export type LaneOptions = {
  origin: string;
  requestTimeoutMs: number;
  ca: string | null;
  proxy: string | null;
  strictConnections: boolean;
};

/**
 * One connection that carries one DELETE at a time: an in-flight slot. An own array of these is the cheapest dispatcher there
 * is, and one broken connection puts one id in doubt.
 */
export class Lane {
  readonly #options: LaneOptions;
  #dispatcher: Client | ProxyAgent;
  #exchange: Exchange | null = null;
  #deadline: NodeJS.Timeout | null = null;
  #headers: string[] = [];

  constructor(options: LaneOptions) {
    this.#options = options;
    this.#dispatcher = openDispatcher(options);
  }

  /** Sends one DELETE. `done` is called exactly once, at the latest when the request's deadline has passed. */
  send(path: string, authorization: string, done: (answer: Answer) => void): void {
    const { origin, strictConnections } = this.#options;
    this.#exchange = new Exchange(authorization, done);
    this.#startDeadline();
    this.#dispatcher.dispatch(
      { origin, path, method: 'DELETE', headers: this.#headersOf(authorization), reset: strictConnections },
      this.#exchange,
    );
  }

  /** The same array as long as the token is the same: one thing less to make for each request. */
  #headersOf(authorization: string): string[] {
    if (this.#headers[1] !== authorization) this.#headers = ['authorization', authorization];
    return this.#headers;
  }

  /** Drops the connection. A request on it ends as `maybe-sent`, or as `not-sent` if it was never written. */
  close(): void {
    if (this.#deadline) clearTimeout(this.#deadline);
    this.#dispatcher.destroy().catch(() => {});
  }

  // An own deadline, because undici's time-outs are up to a second late and an AbortSignal does nothing while a request waits
  // for its connection. One timer a lane, moved on by each request, costs a tenth of a timer a request.
  #startDeadline(): void {
    if (this.#deadline) this.#deadline.refresh();
    else this.#deadline = setTimeout(() => this.#expire(), this.#options.requestTimeoutMs);
  }

  #expire(): void {
    if (this.#exchange === null || this.#exchange.isOver) return;
    if (this.#exchange.isWritten) {
      this.#exchange.expire();
      return;
    }
    // Still waiting for its connection: give up both. First the new one, because the next request may come at once.
    const abandoned = this.#dispatcher;
    this.#dispatcher = openDispatcher(this.#options);
    this.#exchange.expire();
    abandoned.destroy().catch(() => {});
  }
}

/**
 * Connects as a lane would, through the proxy and with TLS, and sends nothing. Throws why it cannot. What is refused here is kept from being
 * written as in `Exchange`, and would be no DELETE.
 */
export async function reachOrigin(options: LaneOptions): Promise<void> {
  const dispatcher = openDispatcher(options);
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
            throw new Error('only the connection was wanted');
          },
          onResponseStart() {},
          onResponseData() {},
          onResponseEnd() {},
          onResponseError: (_controller, error) => reject(error), // not heard any more once there was a connection
        },
      );
    });
  } finally {
    clearTimeout(timer);
    await dispatcher.destroy();
  }
}

function openDispatcher({ origin, ca, proxy, requestTimeoutMs }: LaneOptions): Client | ProxyAgent {
  const tls = { timeout: Math.min(5_000, requestTimeoutMs), ...(ca === null ? {} : { ca }) };
  // HTTP/1.1 on purpose: an in-flight slot is a connection, and the library replays nothing by itself.
  const shared = { allowH2: false, headersTimeout: 0, bodyTimeout: 0, connect: tls };
  if (proxy === null) return new Client(origin, shared);
  return new ProxyAgent({ ...shared, uri: proxy, requestTls: tls, connections: 1, proxyTunnel: true });
}
