import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { describe, test } from 'vitest';
import type { TokenSettings } from '../../../src/token/open-token.ts';
import type { Token } from '../../../src/token/token.ts';
import { openTokenHarness, type TokenHarness } from '../../support/token-harness.ts';

const canaries = {
  secret: 'canary secret+&/4711',
  refresh: 'canary-refresh-4712',
  access: 'canary.access.4713',
};

type Answer = (echo: string, response: ServerResponse) => void;

const json = (status: number, body: object, headers = {}): Answer =>
  ((_echo, response) => response.writeHead(status, headers).end(JSON.stringify(body))) satisfies Answer;

/** Every way a server can throw back at us what we sent. */
const answers: [string, Answer][] = [
  [
    'an OAuth error',
    (echo, response) =>
      response.writeHead(400).end(JSON.stringify({ error: 'invalid_client', error_description: echo })),
  ],
  ['an error that is the secret', (echo, response) => response.writeHead(401).end(JSON.stringify({ error: echo }))],
  ['a server error', (echo, response) => response.writeHead(500).end(echo)],
  [
    'a redirect',
    (echo, response) =>
      response.writeHead(302, { location: `/x/${encodeURIComponent(echo)}?${encodeURIComponent(echo)}` }).end(),
  ],
  ['a wait', (echo, response) => response.writeHead(429, { 'retry-after': encodeURIComponent(echo) }).end()],
  [
    'a challenge',
    (echo, response) =>
      response.writeHead(401, { 'www-authenticate': `Basic realm="${encodeURIComponent(echo)}"` }).end('{'),
  ],
  ['another type of token', json(200, { access_token: canaries.access, token_type: canaries.access })],
  ['a token with a newline', json(200, { access_token: `${canaries.access}\n`, token_type: 'bearer' })],
  ['no JSON', (_echo, response) => response.end(canaries.access)],
  ['a broken connection', (_echo, response) => response.socket!.destroy()],
];

async function echoOf(request: IncomingMessage): Promise<string> {
  const body = String(Buffer.concat(await request.toArray()));
  const plain = [...new URLSearchParams(body).values()].join(' ');
  const basic = Buffer.from(request.headers.authorization?.split(' ')[1] ?? '', 'base64');
  return `${plain} ${body} ${request.headers.authorization} ${basic} ${decodeURIComponent(String(basic))}`;
}

async function serve({ sandbox: _ }: TokenHarness, answer: Answer, atEnd: (task: () => void) => void): Promise<string> {
  const server = createServer(async (request, response) => answer(await echoOf(request), response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/token?key=canary`;
}

/** All that a token lets anybody see. */
async function whatIsSeen(token: Token): Promise<string> {
  const failure = await token.start().catch((error) => error);
  const halt = token.refused('Bearer x', '');
  return inspect([failure, failure?.stack, token.waiting, token.source, halt, token], { depth: 10, showHidden: true });
}

describe.concurrent('no secret is seen when the token endpoint answers', () => {
  for (const tokenAuth of ['basic', 'post'] as const) {
    test.for(answers)(`%s (${tokenAuth})`, async ([, answer], { expect, onTestFinished }) => {
      const harness = await openTokenHarness(onTestFinished);
      const tokenUrl = await serve(harness, answer, onTestFinished);
      const ways: Partial<TokenSettings>[] = [
        { clientSecretFile: harness.file('secret', canaries.secret) },
        { refreshTokenFile: harness.file('refresh', canaries.refresh) },
      ];
      for (const way of ways) {
        const env = { EXPUNGE_CLIENT_SECRET: canaries.secret };
        const seen = await whatIsSeen(harness.open({ tokenUrl, tokenAuth, ...way }, { env }));
        expect(seen).toMatch(/token endpoint/);
        expect(seen).not.toMatch(/canary/i);
        expect(seen).not.toContain(Buffer.from(`abc:${canaries.secret}`).toString('base64').slice(0, 12));
      }
    });
  }
});
