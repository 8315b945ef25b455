import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Resource } from '../ledger/outcome.ts';
import { compileFaults, type FaultTable } from './faults.ts';
import { type Counts, noteRequest, openJournal } from './journal.ts';
import { holdObjects, type Objects } from './objects.ts';
import { createPaths } from './paths.ts';
import { type Service, serve, tokenPath } from './serve.ts';
import type { Client } from './token-endpoint.ts';
import { createTokens } from './tokens.ts';

export type SandboxOptions = {
  port?: number | undefined; // 0, the default, takes a free one
  host?: string | undefined;
  basePath?: string | undefined; // '/api/eu' serves DELETE /api/eu/v2/…
  objects?: Objects | undefined;
  token?: string | undefined; // always valid
  client?: Client | undefined; // who may ask the token endpoint
  tokenLifeSeconds?: number | undefined;
  faults?: FaultTable | undefined;
  seed?: number | undefined; // of the faults
  latencyMs?: number | undefined; // every request waits this long before it is looked at
  record?: boolean | undefined; // keeps what `seen`, `executed` and `answered204` show; costs memory for each request
  now?: (() => number) | undefined; // milliseconds since 1970, for tokens, the rate and dates
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
  latencyMs: number;
  exists(resource: Resource, id: string): boolean;
  remaining(resource?: Resource): number;
  revokeTokens(): void; // what the token endpoint issued so far counts as expired
  readonly seen: readonly string[];
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
  const { basePath = '', token = 'sandbox-token', tokenLifeSeconds = 3_600, now = Date.now } = options;
  return {
    paths: createPaths(basePath),
    store: holdObjects(options.objects ?? {}),
    journal: openJournal(options.record ?? false),
    tokens: createTokens({ token, lifeSeconds: tokenLifeSeconds, now }),
    token,
    client: options.client ?? { id: 'sandbox', secret: 'sandbox-secret' },
    tokenLifeSeconds,
    now,
    latencyMs: options.latencyMs ?? 0,
    pickFault: compileFaults(options.faults ?? {}, { seed: options.seed ?? 1, now }),
  };
}

function createSandboxServer(service: Service): Server {
  // No keep-alive time-out: a connection that is dropped while a request is on its way is a fault, and faults are asked for.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    noteRequest(service.journal, request.method!, request.url!);
    if (service.latencyMs === 0) serve(service, response);
    else setTimeout(() => server.listening && serve(service, response), service.latencyMs);
  });
  return server;
}

async function listen(server: Server, host: string, port: number): Promise<string> {
  server.listen(port, host);
  await once(server, 'listening');
  return `http://${host.includes(':') ? `[${host}]` : host}:${(server.address() as AddressInfo).port}`;
}

function present(service: Service, server: Server, origin: string, options: SandboxOptions): Sandbox {
  const { store, journal, tokens, token, client, now } = service;
  let faults = options.faults ?? {};
  return {
    url: origin + (options.basePath ?? ''),
    tokenUrl: origin + tokenPath,
    token,
    client,
    get faults() {
      return faults;
    },
    set faults(table) {
      service.pickFault = compileFaults(table, { seed: options.seed ?? 1, now });
      faults = table;
    },
    get latencyMs() {
      return service.latencyMs;
    },
    set latencyMs(latencyMs) {
      service.latencyMs = latencyMs;
    },
    exists: (resource, id) => store[resource].has(id),
    remaining: (resource) => (resource ? store[resource].size : store.annotations.size + store.views.size),
    revokeTokens: () => tokens.revokeIssued(),
    seen: journal.seen,
    executed: journal.executed,
    answered204: journal.answered204,
    counts: journal.counts,
    close: () => close(server),
  };
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return;
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}
