import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { RefreshingToken } from '../../../src/token/refreshing-token.ts';
import type { IssueResult } from '../../../src/token/token.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const issued = (n: number | string, lifeMs: number | null = 100_000): IssueResult => ({
  kind: 'issued',
  header: `Bearer t${n}`,
  lifeMs,
});
const down: IssueResult = { kind: 'unavailable', reason: 'the token endpoint answers 503', askedMs: null };

/** A token whose issuer answers as it is told, after 10 ms; `calls` has the times it was asked at. */
function open(answer: (nth: number) => IssueResult, { random = 0.5 } = {}) {
  const calls: number[] = [];
  const began = performance.now();
  const issuer = {
    source: 'here',
    issue: () => {
      calls.push(performance.now() - began);
      return new Promise<IssueResult>((resolve) => setTimeout(() => resolve(answer(calls.length)), 10));
    },
  };
  const token = new RefreshingToken(issuer, { clock: () => performance.now(), random: () => random });
  const changes: (string | null)[] = [];
  const failures: string[] = [];
  token.onChange(() => changes.push(token.authorization()));
  token.onRefused((reason) => failures.push(reason));
  onTestFinished(() => void token.close());
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  const start = async () => {
    const started = token.start();
    started.catch(() => {});
    await pass(10);
    return started;
  };
  return { token, calls, changes, failures, pass, start };
}

describe('a token that is asked for', () => {
  it('is none before it came, and says why', async () => {
    const { token, start } = open((n) => issued(n));
    expect([token.authorization(), token.waiting]).toEqual([null, 'getting a token from here']);
    await start();
    expect([token.authorization(), token.waiting, token.refreshes, token.lifeMs]).toEqual([
      'Bearer t1',
      '',
      0,
      100_000,
    ]);
  });

  it('is replaced at 80 % of its life, and stays in use until the next one is there', async () => {
    const { token, calls, changes, pass, start } = open((n) => issued(n));
    await start();
    await pass(80_000);
    expect([calls.length, token.authorization()]).toEqual([2, 'Bearer t1']);
    await pass(10);
    expect([token.authorization(), token.refreshes, token.waiting]).toEqual(['Bearer t2', 1, '']);
    expect(changes).toEqual(['Bearer t1', 'Bearer t2']);
  });

  it('is not used after its life, when nobody gives another one', async () => {
    const { token, changes, pass, start } = open((n) => (n === 1 ? issued(1, 10_000) : down));
    await start();
    await pass(9_990);
    expect([token.authorization(), token.waiting]).toEqual(['Bearer t1', '']);
    await pass(20);
    expect(token.authorization()).toBeNull();
    expect(token.waiting).toMatch(/^the token endpoint answers 503(; trying again in \d+ s)?$/);
    expect(changes).toEqual(['Bearer t1']);
  });

  it('that says nothing of its life is replaced after 4 minutes, and stays in use if that fails', async () => {
    const { token, calls, pass, start } = open((n) => (n === 1 ? issued(1, null) : down));
    await start();
    await pass(239_000);
    expect([calls.length, token.lifeMs]).toEqual([1, null]);
    await pass(600_000);
    expect(calls.length).toBeGreaterThan(20);
    expect(token.authorization()).toBe('Bearer t1');
  });

  it('is asked for at most once a second, however short it lives', async () => {
    const { calls, pass, start } = open((n) => issued(n, 5));
    await start();
    await pass(10_000);
    expect(calls.length).toBeLessThanOrEqual(11);
    expect(calls.length).toBeGreaterThan(8);
  });

  it('is asked for again and again while its source is down, with growing waits, and starting does not fail', async () => {
    const { token, calls, changes, pass, start } = open((n) => (n < 6 ? down : issued(n)), { random: 1 });
    await start();
    expect(token.waiting).toBe('the token endpoint answers 503; trying again in 2 s');
    await pass(60_000);
    const waits = calls.slice(1).map((at, i) => at - calls[i]! - 10);
    expect(waits).toEqual([1_500, 2_000, 3_000, 5_000, 9_000]);
    expect([token.authorization(), changes]).toEqual(['Bearer t6', ['Bearer t6']]);
  });

  it('waits as long as its source wants', async () => {
    const { token, calls, pass, start } = open((n) => (n === 1 ? { ...down, askedMs: 40_000 } : issued(n)));
    await start();
    await pass(39_999);
    expect([calls.length, token.waiting]).toEqual([1, 'the token endpoint answers 503; trying again in 1 s']);
    await pass(11);
    expect(token.authorization()).toBe('Bearer t2');
  });
});

describe('a source that refuses', () => {
  const no: IssueResult = { kind: 'refused', reason: 'invalid_client' };

  it('at first fails the start, and is asked again only by another start', async () => {
    const { token, calls, failures, pass, start } = open((n) => (n === 1 ? no : issued(n)));
    await expect(start()).rejects.toMatchObject({ code: 'CREDENTIALS', message: 'invalid_client' });
    await pass(600_000);
    expect([calls.length, token.waiting, failures]).toEqual([1, 'invalid_client', []]);
    expect(token.refused('Bearer x', '')).toEqual({ halt: 'invalid_client' });
    await start();
    expect(token.authorization()).toBe('Bearer t2');
  });

  it('later is told to whoever listens, once, and never asked again', async () => {
    const { token, calls, failures, pass, start } = open((n) => (n === 1 ? issued(n) : no));
    await start();
    await pass(600_000);
    expect([calls.length, token.authorization(), failures]).toEqual([2, null, ['invalid_client']]);
  });

  it('after it had been down at the start is told to whoever listens', async () => {
    const { failures, pass, start } = open((n) => (n === 1 ? down : no));
    await start();
    await pass(5_000);
    expect(failures).toEqual(['invalid_client']);
  });
});

/** What became of the header when many requests with it, and then some more, were refused in 200 ms. */
async function refuse({ token, pass }: Pick<ReturnType<typeof open>, 'token' | 'pass'>, header: string, said = '') {
  for (let n = 0; n < 10; n++) token.refused(header, said);
  await pass(100);
  token.sent(header);
  await pass(100);
  return token.refused(header, said);
}

/** Asks the API, which refuses it, whenever the token may be sent, for so long or until the run must halt. */
async function askInVain({ token, pass }: Pick<ReturnType<typeof open>, 'token' | 'pass'>, ms: number, said = '') {
  let requests = 0;
  for (let spent = 0; spent < ms; spent += 10) {
    const header = token.authorization();
    if (header !== null) {
      token.sent(header);
      requests++;
      const end = token.refused(header, said);
      if (typeof end !== 'string') return { halt: end.halt, requests, spent };
    }
    await pass(10);
  }
  return { halt: null, requests, spent: ms };
}

describe('a token that the API refuses', () => {
  it('after it had worked is replaced once, however many requests were refused, also late ones', async () => {
    const opened = open((n) => issued(n));
    const { token, calls, pass, start } = opened;
    await start();
    await pass(5_000);
    token.accepted('Bearer t1', 0);
    expect(await refuse(opened, 'Bearer t1')).toBe('again');
    for (let i = 0; i < 1_000; i++) expect(token.refused('Bearer t1', '')).toBe('again');
    expect(token.authorization()).toBeNull();
    expect(token.waiting).toBe('the API refused the token, getting another');
    await pass(10);
    expect([calls.length, token.authorization()]).toEqual([2, 'Bearer t2']);
    token.accepted('Bearer t2', 0);
    for (let i = 0; i < 1_000; i++) expect(token.refused('Bearer t1', '')).toBe('again');
    await pass(1_000);
    expect([calls.length, token.authorization()]).toEqual([2, 'Bearer t2']);
  });

  it('while the next one is on its way waits for that one', async () => {
    const { token, calls, pass, start } = open((n) => issued(n));
    await start();
    await pass(80_000);
    expect(calls).toHaveLength(2);
    token.refused('Bearer t1', '');
    await pass(10);
    expect([calls.length, token.authorization()]).toEqual([2, 'Bearer t2']);
  });

  it('does not hurry a source that is down', async () => {
    const opened = open((n) => (n === 1 ? issued(n) : { ...down, askedMs: 30_000 }));
    const { calls, pass, start } = opened;
    await start();
    await pass(80_020);
    expect(await askInVain(opened, 19_000)).toMatchObject({ halt: null });
    expect([calls.length, opened.token.authorization()]).toEqual([2, null]);
  });

  it('when it is young and never worked is asked again with growing waits, and not replaced for 5 s', async () => {
    const opened = open((n) => issued(n));
    await opened.start();
    const asked = await askInVain(opened, 5_000, '401: Token used before issued');
    expect(asked).toEqual({ halt: null, requests: 8, spent: 5_000 });
    expect(opened.calls).toHaveLength(1);
    expect(opened.token.waiting).toMatch(
      /^the API refused the token \(401: Token used before issued\); asking again with the same one in [12] s$/,
    );
    opened.token.accepted('Bearer t1', 0);
    expect([opened.token.authorization(), opened.token.waiting]).toEqual(['Bearer t1', '']);
  });

  it('as well as the next one is hopeless within 10 s and 20 requests: perhaps it is not meant for this API', async () => {
    const opened = open((n) => issued(n));
    await opened.start();
    const { halt, requests, spent } = await askInVain(opened, 20_000, '401: wrong audience');
    expect(halt).toMatch(/^the API refused a fresh token again and again \(401: wrong audience\): .*EXPUNGE_SCOPE/);
    expect([requests < 20, spent < 10_000, opened.calls.length]).toEqual([true, true, 2]);
    expect(opened.failures).toEqual([halt]);
    await opened.pass(600_000);
    expect([opened.calls.length, opened.token.authorization()]).toEqual([2, null]);
  });

  it('and given again as it was is hopeless after three times', async () => {
    const opened = open(() => issued('same'));
    await opened.start();
    await askInVain(opened, 60_000);
    expect(opened.failures).toEqual(['here keeps giving the token that the API refused']);
  });

  it('after it had worked, and the next one too, names a server that keeps one live token', async () => {
    const opened = open((n) => issued(n));
    const { token, pass, start } = opened;
    await start();
    for (const n of [1, 2]) {
      token.accepted(`Bearer t${n}`, 0);
      await refuse(opened, `Bearer t${n}`);
      await pass(1_010);
    }
    const { halt } = await askInVain(opened, 10_000);
    expect(halt).toMatch(/had worked: .*only one live token per client: another/);
  });

  it('is used on where the next one, asked for in the background, is not known yet', async () => {
    const opened = open((n) => issued(n));
    const { token, pass, start } = opened;
    await start();
    token.accepted('Bearer t1', 0);
    await pass(80_010);
    expect(token.authorization()).toBe('Bearer t2');
    token.sent('Bearer t2');
    expect(token.authorization()).toBe('Bearer t1');
    token.refused('Bearer t2', '');
    expect(token.authorization()).toBe('Bearer t1');
    await pass(100);
    expect(token.authorization()).toBe('Bearer t2');
    token.accepted('Bearer t2', 0);
    expect([token.authorization(), opened.calls.length]).toEqual(['Bearer t2', 2]);
  });

  it('now and then, with quiet ones between, goes on for ever', async () => {
    const opened = open((n) => issued(n));
    const { token, pass, start } = opened;
    await start();
    for (let n = 0; n < 20; n++) {
      const header = token.authorization()!;
      token.accepted(header, 0);
      expect(await refuse(opened, header)).toBe('again');
      await pass(82_000); // replaced after a second, and once more at 80 % of its life
    }
  });
});

describe('a token that only one server refuses', () => {
  it.each([2, 3, 5])('of %i is neither replaced nor given up, in 10,000 requests', async (servers) => {
    const opened = open((n) => issued(n, 86_400_000));
    const { token, pass, start } = opened;
    await start();
    await pass(20_000);
    let seed = 1;
    const ends = new Set<unknown>();
    for (let n = 0; n < 10_000; n++) {
      await pass(1);
      const header = token.authorization();
      if (header === null) continue;
      token.sent(header);
      seed = (seed * 48_271) % 2_147_483_647;
      if (seed % servers === 0) ends.add(token.refused(header, ''));
      else token.accepted(header, 0);
    }
    expect([...ends].filter((end) => typeof end !== 'string')).toEqual([]);
    expect([opened.failures, opened.calls.length <= 2]).toEqual([[], true]);
  });
});

describe('tokens that live 2 s', () => {
  it.each([
    ['and say so', 2_000],
    ['and do not say so', null],
  ])('%s last through 60 s of requests every 20 ms', async (_, lifeMs) => {
    const born = new Map<string, number>();
    const { token, calls, failures, pass, start } = open(
      (n) => {
        born.set(`Bearer t${n}`, performance.now());
        return issued(n, lifeMs);
      },
      { random: 1 },
    );
    await start();
    let [worked, refused] = [0, 0];
    for (let i = 0; i < 3_000; i++) {
      const header = token.authorization();
      if (header !== null) token.sent(header);
      await pass(20);
      if (header === null) continue;
      if (performance.now() - born.get(header)! < 2_000) {
        worked++;
        token.accepted(header, 0);
      } else if (token.refused(header, '') === 'again') refused++;
    }
    expect(failures).toEqual([]);
    expect(worked).toBeGreaterThan(2_700);
    expect(refused).toBeLessThan(60);
    expect(calls.length).toBeLessThan(60);
  });
});

describe('two processes on a server that keeps one live token', () => {
  it.each([
    ['tokens of an hour', 3_600_000, 10],
    ['tokens of an hour and a slow endpoint', 3_600_000, 2_000],
    ['tokens that do not say how long they live', null, 10],
    ['the same and a slow endpoint', null, 2_000],
    ['tokens of 5 s', 5_000, 10],
  ])('end in a halt that says so: %s', async (_, lifeMs, slowMs) => {
    let [live, n] = ['', 0];
    const issuer = {
      source: 'here',
      issue: () =>
        new Promise<IssueResult>((resolve) =>
          setTimeout(() => {
            live = `Bearer t${++n}`;
            resolve({ kind: 'issued', header: live, lifeMs });
          }, slowMs),
        ),
    };
    const options = { clock: () => performance.now(), random: () => 0.5 };
    const tokens = [new RefreshingToken(issuer, options), new RefreshingToken(issuer, options)];
    let halted = '';
    for (const token of tokens) void token.start();
    for (let i = 0; i < 30_000 && halted === ''; i++) {
      await vi.advanceTimersByTimeAsync(10);
      for (const token of tokens) {
        const header = token.authorization();
        if (header === null) continue;
        token.sent(header);
        if (header === live) {
          token.accepted(header, 0);
          continue;
        }
        const end = token.refused(header, '');
        if (typeof end !== 'string') halted = end.halt;
      }
    }
    expect(halted).toContain('only one live token per client');
    expect(n).toBeLessThan(30);
    await vi.advanceTimersByTimeAsync(slowMs);
    const closed = tokens.map((token) => token.close());
    await vi.advanceTimersByTimeAsync(slowMs);
    await Promise.all(closed);
  });
});
