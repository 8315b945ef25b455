import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

type Refusing = {
  /** It learns of a token so many ms after it was issued, or first seen. */
  lateMs?: number;
  /** Of so many nodes behind it, one refuses every token. 0 = none does. */
  nodes?: number;
  /** It refuses every token. */
  isDead?: boolean;
  lifeSeconds?: number;
};

/** An API with a token endpoint that refuses tokens with a 401, and what it saw. */
export type RefusingApi = {
  url: string;
  tokenUrl: string;
  readonly executed: ReadonlySet<string>;
  readonly refused: number;
  readonly tokens: number;
  /** When the first and the last request for an object was refused, by `performance.now()`. */
  readonly refusedAt: { first: number; last: number };
};

export const refusalText = 'Token used before issued';

export async function startRefusingApi(
  atEnd: (task: () => Promise<void>) => void,
  { lateMs = 0, nodes = 0, isDead = false, lifeSeconds = 600 }: Refusing,
): Promise<RefusingApi> {
  const bornAt = new Map<string, number>();
  const executed = new Set<string>();
  const refusedAt = { first: 0, last: 0 };
  let [refused, tokens, seed] = [0, 0, 1];
  const draw = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const issue = (response: ServerResponse) => {
    const token = `t${++tokens}`;
    bornAt.set(`Bearer ${token}`, performance.now());
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: lifeSeconds }));
  };
  const isRefused = (authorization: string) => {
    if (!bornAt.has(authorization)) bornAt.set(authorization, performance.now());
    const ageMs = performance.now() - bornAt.get(authorization)!;
    return isDead || ageMs < lateMs || ageMs > lifeSeconds * 1_000 || (nodes > 0 && draw() < 1 / nodes);
  };
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    request.resume();
    if (request.method === 'POST') return issue(response);
    if (isRefused(request.headers.authorization ?? '')) {
      refused++;
      refusedAt.first ||= performance.now();
      refusedAt.last = performance.now();
      const challenge = `Bearer error="invalid_token", error_description="${refusalText}"`;
      response.writeHead(401, { 'www-authenticate': challenge }).end();
      return;
    }
    const isNew = !executed.has(request.url!);
    executed.add(request.url!);
    response.writeHead(isNew ? 204 : 404).end();
  };
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    tokenUrl: `${url}/token`,
    executed,
    refusedAt,
    get refused() {
      return refused;
    },
    get tokens() {
      return tokens;
    },
  };
}
