import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { fixedToken } from '../../../src/token/fixed-token.ts';
import { RefreshingToken } from '../../../src/token/refreshing-token.ts';
import type { Token } from '../../../src/token/token.ts';
import { openRefusals } from '../../support/refusing-api.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const ids = 300;
const senders = 16;
const clock = () => performance.now();
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const patienceMs = 120_000;

/** A token that is given, or one that is requested, as a command and client credentials are. */
const kinds: Record<'given' | 'requested', (api: ReturnType<typeof openRefusals>) => Token> = {
  given: () => fixedToken('given', 'a test', clock),
  requested: (api) => {
    const issue = async () => {
      await sleep(5);
      return { kind: 'issued', header: `Bearer ${api.issue()}`, lifeMs: api.lifeSeconds * 1_000 } as const;
    };
    return new RefreshingToken({ source: 'here', issue }, { clock, random: () => 0.5 });
  },
};

/** What becomes of requests that so many processes send with tokens of their own; `perSecond`: of all of them. */
async function send(
  kind: keyof typeof kinds,
  refusing: Parameters<typeof openRefusals>[0],
  processes = 1,
  everyMs = 0,
) {
  const api = openRefusals(refusing);
  const seen = { deleted: 0, refused: 0, halt: '', tokens: 0, refusedForMs: 0 };
  let firstRefusalMs = 0;
  let left = ids;
  const endsAt = clock() + patienceMs;
  const one = async (token: Token) => {
    while (left > 0 && seen.halt === '' && clock() < endsAt) {
      const header = token.authorization();
      await sleep(header === null ? 5 : Math.max(5, everyMs));
      if (header === null || left === 0 || token.authorization() !== header) continue;
      left--;
      token.sent(header);
      await sleep(5); // it is on the wire
      if (!api.isRefused(header)) {
        token.accepted(header, 0);
        seen.deleted++;
        continue;
      }
      left++; // it costs the id no attempt
      seen.refused++;
      firstRefusalMs ||= clock();
      seen.refusedForMs = clock() - firstRefusalMs;
      const end = token.refused(header, 'Token used before issued');
      if (typeof end !== 'string') seen.halt = end.halt;
    }
  };
  const tokens = Array.from({ length: processes }, () => kinds[kind](api));
  const work = Promise.all(
    tokens.map(async (token) => {
      await token.start();
      await Promise.all(Array.from({ length: senders / processes }, () => one(token)));
      await token.close();
    }),
  );
  await vi.advanceTimersByTimeAsync(patienceMs);
  await work;
  return { ...seen, tokens: api.tokens };
}

const both = Object.keys(kinds) as (keyof typeof kinds)[];

describe.each(both)('a token that is %s', (kind) => {
  it.each([100, 1_000, 5_000])('and of which the API learns %i ms late loses no request', async (lateMs) => {
    const { deleted, halt, refused, tokens } = await send(kind, { lateMs });
    expect([deleted, halt]).toEqual([ids, '']);
    expect([refused > 0, refused < 50, tokens <= 1]).toEqual([true, true, true]);
  });

  it.each([2, 3, 5])('and that one node of %i refuses loses no request', async (nodes) => {
    const { deleted, halt, refused } = await send(kind, { nodes });
    expect([deleted, halt, refused > 10]).toEqual([ids, '', true]);
  });

  it('and that one node of two refuses, which learns late of it, loses none of the requests of three processes', async () => {
    const { deleted, halt } = await send(kind, { nodes: 2, lateMs: 1_000 }, 4);
    expect([deleted, halt]).toEqual([ids, '']);
  });

  it('and is dead is given up within 10 s and 50 requests', async () => {
    const { deleted, halt, refused, refusedForMs } = await send(kind, { isDead: true });
    expect([deleted, halt !== '']).toEqual([0, true]);
    expect([refused < 50, refusedForMs <= 10_000], `${refused} in ${refusedForMs}`).toEqual([true, true]);
  });
});

it.each([0, 1_000])(
  'tokens that live 10 s and that one node of two refuses, learning of them after %i ms, lose no request while they are replaced',
  async (lateMs) => {
    const { deleted, halt, tokens } = await send('requested', { nodes: 2, lateMs, lifeSeconds: 10 }, 1, 1_000);
    expect([deleted, halt, tokens > 1]).toEqual([ids, '', true]);
  },
);
