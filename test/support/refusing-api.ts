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
};

export const refusalText = 'Token used before issued';

/** What such an API does with tokens, without a server. Time is that of `performance.now()`. */
export function openRefusals({ lateMs = 0, nodes = 0, isDead = false, lifeSeconds = 600 }: Refusing) {
  const bornAt = new Map<string, number>();
  let [tokens, seed] = [0, 1];
  const draw = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  return {
    lifeSeconds,
    get tokens() {
      return tokens;
    },
    issue: () => {
      const token = `t${++tokens}`;
      bornAt.set(`Bearer ${token}`, performance.now());
      return token;
    },
    isRefused: (authorization: string) => {
      if (!bornAt.has(authorization)) bornAt.set(authorization, performance.now());
      const ageMs = performance.now() - bornAt.get(authorization)!;
      return isDead || ageMs < lateMs || ageMs > lifeSeconds * 1_000 || (nodes > 0 && draw() < 1 / nodes);
    },
  };
}

export async function startRefusingApi(
  atEnd: (task: () => Promise<void>) => void,
  refusing: Refusing,
): Promise<RefusingApi> {
  const refusals = openRefusals(refusing);
  const executed = new Set<string>();
  let refused = 0;
  const issue = (response: ServerResponse) => {
    const token = { access_token: refusals.issue(), token_type: 'Bearer', expires_in: refusals.lifeSeconds };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(token));
  };
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    request.resume();
    if (request.method === 'POST') return issue(response);
    if (refusals.isRefused(request.headers.authorization ?? '')) {
      refused++;
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
    get refused() {
      return refused;
    },
    get tokens() {
      return refusals.tokens;
    },
  };
}
