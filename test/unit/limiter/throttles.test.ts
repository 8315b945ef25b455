import { describe, expect, it } from 'vitest';
import { Throttles } from '../../../src/limiter/throttles.ts';

function open() {
  const state = { now: 1_000 };
  return { state, holds: new Throttles(() => state.now) };
}

describe('a throttle', () => {
  it('lasts as long as the server asked for, and longer only if it asks for more', () => {
    const { state, holds } = open();
    expect([holds.request(500, 'a'), holds.request(400, 'b'), holds.request(600, 'c')]).toEqual([true, false, true]);
    state.now = 1_200;
    expect([holds.leftMs, holds.why]).toEqual([400, 'c']);
    state.now = 1_600;
    expect(holds.leftMs).toBe(0);
  });

  it('is reported to Redis until Redis has confirmed it', () => {
    const { state, holds } = open();
    holds.request(500, 'a');
    expect(holds.report()).toEqual({ ms: 500, why: 'a' });
    state.now = 1_100; // that call failed
    expect(holds.report()).toEqual({ ms: 400, why: 'a' });
    holds.receive(1_500, 'a');
    expect(holds.report()).toEqual({ ms: 0, why: '' });
  });

  it('that began during a report of another is reported with the next call', () => {
    const { holds } = open();
    holds.request(500, 'a');
    holds.report();
    holds.request(900, 'b');
    holds.receive(1_500, 'a');
    expect(holds.report()).toEqual({ ms: 900, why: 'b' });
  });

  it('is over when Redis says so', () => {
    const { holds } = open();
    holds.receive(90_000, 'a spent quota');
    expect(holds.leftMs).toBe(89_000);
    holds.receive(0, '');
    expect(holds.leftMs).toBe(0);
  });

  it('that an operator lifted is over here at once, also one that was not reported to Redis yet', () => {
    const { holds } = open();
    holds.request(500, 'a');
    holds.backOffLocally('the API cannot be reached');
    holds.release();
    expect([holds.leftMs, holds.report()]).toEqual([0, { ms: 0, why: '' }]);
    expect([holds.request(900, 'b'), holds.leftMs]).toEqual([true, 900]);
  });

  it('of local backoff is not reported, and Redis does not end it', () => {
    const { holds } = open();
    holds.backOffLocally('the API cannot be reached');
    expect(holds.report()).toEqual({ ms: 0, why: '' });
    holds.receive(0, '');
    expect([holds.leftMs, holds.why]).toEqual([500, 'the API cannot be reached, though other processes get through']);
  });

  it('of local backoff is longer each time, up to 4 s, until a request is accepted', () => {
    const { holds } = open();
    const next = () => {
      holds.backOffLocally('the API cannot be reached');
      return holds.leftMs;
    };
    expect([next(), next(), next(), next(), next()]).toEqual([500, 1_000, 2_000, 4_000, 4_000]);
    holds.release();
    holds.succeed();
    expect(next()).toBe(500);
  });
});
