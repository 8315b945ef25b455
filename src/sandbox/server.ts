import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Resource } from '../model/outcome.ts';
import { createPaths } from './answer.ts';
import { type Capacity, type Census, House } from './capacity.ts';
import { compileFaults, type FaultTable } from './faults.ts';
import { type Counts, noteRequest, openJournal } from './journal.ts';
import { holdObjects, type Objects } from './objects.ts';
import { type RateLimit, startLimit } from './rate-limit.ts';
import { type Service, serve, showJournal, tokenPath } from './serve.ts';
import { type Client, createTokens, type TokenFaults } from './tokens.ts';

export type SandboxOptions = {
  port?: number | undefined; // 0, the default, takes a free one
  host?: string | undefined;
  basePath?: string | undefined; // '/api/eu' serves DELETE /api/eu/v2/…
  objects?: Objects | undefined;
  token?: string | undefined; // always valid
  client?: Client | undefined; // who may ask the token endpoint
  tokenLifeSeconds?: number | undefined;
  tokenFaults?: TokenFaults | undefined;
  oneLiveToken?: boolean | undefined; // issuing a token revokes those issued before
  faults?: FaultTable | undefined;
  seed?: number | undefined; // of the faults
  latencyMs?: number | undefined; // every request waits this long before it is looked at
  capacity?: Capacity | undefined; // behind the latency: so many are served at once, the others wait in line
  record?: boolean | undefined; // keeps what `seen`, `arrivals`, `executed` and `answered204` show; costs memory for each request
  now?: (() => number) | undefined; // milliseconds since 1970, for tokens, the rate and every date, also the header
};

/**
 * The API of two deletes as a local server, with its token endpoint. A ledger holds against it when every `deleted` id is in
 * `answered204`, no `absent` id is in `executed`, `seen` has only ids that were asked for, and all other objects exist.
 */
export type Sandbox = {
  readonly url: string; // the base URL
  readonly tokenUrl: string;
  readonly token: string;
  readonly client: Client;
  faults: FaultTable; // assigning replaces it for the requests to come and counts the nth requests from 1 again
  setRate(rate: RateLimit | null): void; // of `faults`, from now on; what was left of the old one is left of the new one
  tokenFaults: TokenFaults; // assigning replaces them and counts their `first` requests again
  latencyMs: number;
  capacity: Capacity | null;
  readonly census: Census; // of who waits for the capacity or is served; needs one
  countAfresh(): void; // the census begins again
  exists(resource: Resource, id: string): boolean;
  remaining(resource?: Resource): number;
  revokeTokens(): void; // what the token endpoint issued so far counts as expired
  readonly refreshToken: string; // the one that is good at the moment: each use rotates it
  readonly seen: readonly string[];
  readonly arrivals: { readonly atMs: readonly number[]; readonly status: readonly number[] }; // parallel to `seen`
  readonly executed: ReadonlySet<string>;
  readonly answered204: ReadonlySet<string>;
  readonly counts: Readonly<Counts>;
  close(): Promise<void>; // drops all connections, also those that hang
};

/** Starts a sandbox that listens when this resolves. Throws for faults that make no sense and where the port is taken. */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const service = createService(options);
  const server = createSandboxServer(service);
  const origin = await listen(server, options.host ?? '127.0.0.1', options.port ?? 0);
  return present(service, server, origin, options);
}

function createService(options: SandboxOptions): Service {
  const { basePath = '', token = 'sandbox-token', now = Date.now, faults = {} } = options;
  const { tokenLifeSeconds: lifeSeconds = 3_600 } = options;
  const tokens = createTokens({ token, lifeSeconds, oneLiveToken: options.oneLiveToken ?? false, now });
  const client = options.client ?? { id: 'sandbox', secret: 'sandbox-secret' };
  return {
    paths: createPaths(basePath),
    store: holdObjects(options.objects ?? {}),
    journal: openJournal(options.record ?? false),
    desk: { client, lifeSeconds, tokens, faults: options.tokenFaults ?? {}, failures: 0 },
    token,
    now,
    latencyMs: options.latencyMs ?? 0,
    date: options.now ? () => new Date(now()).toUTCString() : null,
    house: new House(options.capacity ?? null, () => performance.now()),
    limit: faults.rate ? startLimit(faults.rate, now) : null,
    pickFault: compileFaults(faults, options.seed ?? 1),
  };
}

function createSandboxServer(service: Service): Server {
  // No keep-alive time-out: a connection that is dropped while a request is on its way is a fault, and faults are asked for.
  const server = createServer({ keepAliveTimeout: 0 }, (_, response) => {
    if (showJournal(service, response)) return;
    noteRequest(service.journal, response);
    if (service.latencyMs === 0) receive(response);
    else setTimeout(() => server.listening && receive(response), service.latencyMs);
  });
  const receive = (response: ServerResponse) => {
    if (service.house.capacity === null) serve(service, response);
    else service.house.enter(() => server.listening && serve(service, response));
  };
  return server;
}

async function listen(server: Server, host: string, port: number): Promise<string> {
  server.listen(port, host);
  await once(server, 'listening');
  return `http://${reachableAs(host)}:${(server.address() as AddressInfo).port}`;
}

/** How this machine reaches a server that listens there. */
function reachableAs(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost';
  return host.includes(':') ? `[${host}]` : host;
}

function present(service: Service, server: Server, origin: string, options: SandboxOptions): Sandbox {
  const { store, journal, desk, token, now } = service;
  let faults = options.faults ?? {};
  return {
    url: origin + (options.basePath ?? ''),
    tokenUrl: origin + tokenPath,
    token,
    client: desk.client,
    get faults() {
      return faults;
    },
    set faults(table) {
      service.pickFault = compileFaults(table, options.seed ?? 1);
      service.limit = table.rate ? startLimit(table.rate, now) : null;
      faults = table;
    },
    setRate(rate) {
      service.limit = rate && startLimit(rate, now, service.limit?.remaining());
      faults = { ...faults, rate: rate ?? undefined };
    },
    get tokenFaults() {
      return desk.faults;
    },
    set tokenFaults(tokenFaults) {
      desk.faults = tokenFaults;
      desk.failures = 0;
    },
    get latencyMs() {
      return service.latencyMs;
    },
    set latencyMs(latencyMs) {
      service.latencyMs = latencyMs;
    },
    get capacity() {
      return service.house.capacity;
    },
    set capacity(capacity) {
      service.house.capacity = capacity;
    },
    get census() {
      return service.house.census;
    },
    countAfresh: () => service.house.countAfresh(),
    exists: (resource, id) => store[resource].has(id),
    remaining: (resource) => (resource ? store[resource].size : store.annotations.size + store.views.size),
    revokeTokens: () => desk.tokens.revokeIssued(),
    get refreshToken() {
      return desk.tokens.refreshToken;
    },
    seen: journal.seen,
    arrivals: journal.arrivals,
    executed: journal.executed,
    answered204: journal.answered204,
    counts: journal.counts,
    close: () => {
      service.house.close();
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
