import { describe, expect, it } from 'vitest';
import { Holds } from '../../../src/limiter/holds.ts';

function open() {
  const state = { now: 1_000 };
  return { state, holds: new Holds(() => state.now) };
}

describe('a hold', () => {
  it('lasts as long as the server asked for, and longer only if it asks for more', () => {
    const { state, holds } = open();
    expect([holds.ask(500, 'a'), holds.ask(400, 'b'), holds.ask(600, 'c')]).toEqual([true, false, true]);
    state.now = 1_200;
    expect([holds.leftMs, holds.why]).toEqual([400, 'c']);
    state.now = 1_600;
    expect(holds.leftMs).toBe(0);
  });

  it('is told to Redis until it was heard', () => {
    const { state, holds } = open();
    holds.ask(500, 'a');
    expect(holds.tell()).toEqual({ ms: 500, why: 'a' });
    state.now = 1_100; // that call failed
    expect(holds.tell()).toEqual({ ms: 400, why: 'a' });
    holds.hear(1_500, 'a');
    expect(holds.tell()).toEqual({ ms: 0, why: '' });
  });

  it('that began while Redis was told of another is told with the next call', () => {
    const { holds } = open();
    holds.ask(500, 'a');
    holds.tell();
    holds.ask(900, 'b');
    holds.hear(1_500, 'a');
    expect(holds.tell()).toEqual({ ms: 900, why: 'b' });
  });

  it('is over when Redis says so', () => {
    const { holds } = open();
    holds.hear(90_000, 'a spent quota');
    expect(holds.leftMs).toBe(89_000);
    holds.hear(0, '');
    expect(holds.leftMs).toBe(0);
  });

  it('that an operator lifted is over here at once, also one that Redis was not told yet', () => {
    const { holds } = open();
    holds.ask(500, 'a');
    holds.standAside(3_000, 'the API cannot be reached');
    holds.release();
    expect([holds.leftMs, holds.tell()]).toEqual([0, { ms: 0, why: '' }]);
    expect([holds.ask(900, 'b'), holds.leftMs]).toEqual([true, 900]);
  });

  it('of a process that is in trouble alone is nobody else’s, and Redis does not end it', () => {
    const { holds } = open();
    holds.standAside(3_000, 'the API cannot be reached');
    expect(holds.tell()).toEqual({ ms: 0, why: '' });
    holds.hear(0, '');
    expect([holds.leftMs, holds.why]).toEqual([3_000, 'the API cannot be reached, though other processes get through']);
  });
});
