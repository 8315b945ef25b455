import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Resource } from '../model/resource.ts';
import { createPaths } from './answer.ts';
import { compileFaults, type FaultTable } from './faults.ts';
import { type Counts, noteRequest, openJournal } from './journal.ts';
import { createStore, type Objects } from './objects.ts';
import { type RateLimit, startLimit } from './rate-limit.ts';
import { type SandboxState, serve, showJournal, tokenPath } from './serve.ts';
import { type Client, createTokens, type TokenFaults } from './tokens.ts';

export type SandboxOptions = {
  port?: number | undefined; // 0, the default, takes a free port
  host?: string | undefined;
  basePath?: string | undefined; // '/api/eu' serves DELETE /api/eu/v2/…
  objects?: Objects | undefined;
  token?: string | undefined; // always valid
  client?: Client | undefined; // the client of the token endpoint
  tokenLifeSeconds?: number | undefined;
  tokenFaults?: TokenFaults | undefined;
  oneLiveToken?: boolean | undefined; // each issued token revokes the earlier ones
  faults?: FaultTable | undefined;
  seed?: number | undefined; // seed of the faults
  latencyMs?: number | undefined; // every request waits this long before it is handled
  admission?: Admission | undefined; // decides when each request is served, after the latency; at once by default
  record?: boolean | undefined; // records `seen`, `arrivals`, `executed` and `confirmed`, at the cost of memory for each request
  now?: (() => number) | undefined; // milliseconds since 1970, for tokens, the rate and every date, also the header
};

/** Lets requests wait. `close` drops those that wait. */
export type Admission = { enter(serve: () => void): void; close(): void };

/**
 * The API with the deletes of all resources as a local server, and its token endpoint. A ledger is correct if every `deleted` id is in `confirmed`, no `absent`
 * id is in `executed`, `seen` has only requested ids, and all other objects exist.
 */
export type Sandbox = {
  readonly url: string; // the base URL
  readonly tokenUrl: string;
  readonly token: string;
  readonly client: Client;
  faults: FaultTable; // assigning replaces it for later requests, and counts the nth requests from 1 again
  setRate(rate: RateLimit | null): void; // sets the rate of `faults` from now on; a new rate starts with the requests left of the old one
  tokenFaults: TokenFaults; // assigning replaces them, and counts their `first` requests again
  latencyMs: number;
  exists(resource: Resource, id: string): boolean;
  remaining(resource?: Resource): number;
  revokeTokens(): void; // all tokens issued so far count as expired
  readonly refreshToken: string; // the valid token; each use rotates it
  readonly seen: readonly string[];
  readonly arrivals: { readonly atMs: readonly number[]; readonly status: readonly number[] }; // parallel to `seen`
  readonly executed: ReadonlySet<string>;
  readonly confirmed: ReadonlySet<string>;
  readonly counts: Readonly<Counts>;
  close(): Promise<void>; // drops all connections, including hanging ones
};

/** Starts a sandbox that listens when this resolves. Throws for invalid faults and a port that cannot be opened. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const state = createState(options);
  const server = createSandboxServer(state, options.admission);
  const origin = await listen(server, options.host ?? '127.0.0.1', options.port ?? 0);
  return createSandbox(state, server, origin, options);
}

function createState(options: SandboxOptions): SandboxState {
  const { basePath = '', token = 'sandbox-token', now = Date.now, faults = {} } = options;
  const { tokenLifeSeconds: lifeSeconds = 3_600 } = options;
  const tokens = createTokens({ token, lifeSeconds, oneLiveToken: options.oneLiveToken ?? false, now });
  const client = options.client ?? { id: 'sandbox', secret: 'sandbox-secret' };
  return {
    paths: createPaths(basePath),
    store: createStore(options.objects ?? {}),
    journal: openJournal(options.record ?? false),
    tokenService: { client, lifeSeconds, tokens, faults: options.tokenFaults ?? {}, failures: 0 },
    token,
    now,
    latencyMs: options.latencyMs ?? 0,
    date: options.now ? () => new Date(now()).toUTCString() : null,
    limit: faults.rate ? startLimit(faults.rate, now) : null,
    pickFault: compileFaults(faults, options.seed ?? 1),
  };
}

function createSandboxServer(state: SandboxState, admission: Admission | undefined): Server {
  // No keep-alive timeout: it could drop a connection while a request arrives, a fault that no option asks for.
  const server = createServer({ keepAliveTimeout: 0 }, (_, response) => {
    if (showJournal(state, response)) return;
    noteRequest(state.journal, response);
    if (state.latencyMs === 0) receive(response);
    else setTimeout(() => server.listening && receive(response), state.latencyMs);
  });
  const receive = (response: ServerResponse) => {
    if (admission === undefined) serve(state, response);
    else admission.enter(() => server.listening && serve(state, response));
  };
  return server;
}

async function listen(server: Server, host: string, port: number): Promise<string> {
  server.listen(port, host);
  await once(server, 'listening');
  return `http://${reachableAs(host)}:${(server.address() as AddressInfo).port}`;
}

/** The host name by which this machine reaches a server that listens there. */
function reachableAs(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

function createSandbox(state: SandboxState, server: Server, origin: string, options: SandboxOptions): Sandbox {
  const { store, journal, tokenService, token, now } = state;
  let faults = options.faults ?? {};
  return {
    url: origin + (options.basePath ?? ''),
    tokenUrl: origin + tokenPath,
    token,
    client: tokenService.client,
    get faults() {
      return faults;
    },
    set faults(table) {
      state.pickFault = compileFaults(table, options.seed ?? 1);
      state.limit = table.rate ? startLimit(table.rate, now) : null;
      faults = table;
    },
    setRate(rate) {
      state.limit = rate && startLimit(rate, now, state.limit?.remaining());
      faults = { ...faults, rate: rate ?? undefined };
    },
    get tokenFaults() {
      return tokenService.faults;
    },
    set tokenFaults(tokenFaults) {
      tokenService.faults = tokenFaults;
      tokenService.failures = 0;
    },
    get latencyMs() {
      return state.latencyMs;
    },
    set latencyMs(latencyMs) {
      state.latencyMs = latencyMs;
    },
    exists: (resource, id) => store.get(resource)!.has(id),
    remaining: (resource) =>
      [...store].reduce((sum, [each, ids]) => sum + (resource === undefined || resource === each ? ids.size : 0), 0),
    revokeTokens: () => tokenService.tokens.revokeIssued(),
    get refreshToken() {
      return tokenService.tokens.refreshToken;
    },
    seen: journal.seen,
    arrivals: journal.arrivals,
    executed: journal.executed,
    confirmed: journal.confirmed,
    counts: journal.counts,
    close: () => {
      options.admission?.close();
      return close(server);
    },
  };
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return;
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}
