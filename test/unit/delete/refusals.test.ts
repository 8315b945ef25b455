import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Belief, type Moment, Refusals, type Refused } from '../../../src/delete/refusals.ts';
import type { RefusalReport } from '../../../src/limiter/run-pace.ts';
import { sized } from '../../support/size.ts';

const open = new AbortController().signal;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers(); // test files of a process share their timers
});

const first = { asked: 0, wasAskedLater: false, before: null, isInDoubt: false, ms: 0 } as const;
const notThere = { ...first, status: 404, isGone: true };

/** What one process knows of a run; `hear` is called ten times a second, as the watch of runs does. */
function openRefusals({ isAlone = true, others = () => [] as RefusalReport[] } = {}) {
  const refusals = new Refusals('views', () => performance.now(), isAlone);
  const pass = { expected: 1_000 };
  refusals.enter(pass);
  const passed = async (ms: number) => {
    for (let at = 0; at < ms; at += 100) {
      await vi.advanceTimersByTimeAsync(100);
      refusals.hear(others(), performance.now());
    }
  };
  const beliefs: (Belief | null)[] = [];
  const refused = (count: number, odd: Partial<Refused> = {}, signal = open) => {
    for (let n = 0; n < count; n++) {
      const at = beliefs.push(null) - 1;
      void refusals.judge({ ...notThere, id: `id-${at}`, ...odd }, signal).then((belief) => {
        beliefs[at] = belief;
      });
    }
  };
  /** Ids that are not there again. */
  const again = (count: number, before: Moment, odd: Partial<Refused> = {}) =>
    refused(count, { asked: 1, before, ...odd });
  const told = async () => {
    await vi.advanceTimersByTimeAsync(0);
    return [...beliefs];
  };
  const accepted = (count: number) => {
    for (let n = 0; n < count; n++) refusals.accept(0);
  };
  /** A list of which about a third is not there. */
  const thirdIsGone = async () => {
    for (let n = 0; n < 300; n++) {
      void refusals.judge({ ...notThere, id: 'other' }, open);
      accepted(2);
    }
    accepted(30);
    await passed(100);
  };
  /** Sends four ids one at a time, as they may be sent; all are refused. */
  const probeAll = async (odd: Partial<Refused> = {}) => {
    for (let sent = 0; sent < 4; sent++) {
      while (!refusals.mayProbe) await passed(100);
      refusals.probed();
      refused(1, odd);
    }
  };
  return { refusals, pass, passed, refused, again, accepted, told, thirdIsGone, probeAll };
}

const reportOf = (longest: number, lasting: number, status = 404): RefusalReport => ({
  resource: 'views',
  acceptedAgoMs: 1e9,
  streaks: [{ status, longest, lasting }],
});

describe('a refused id', () => {
  test('is believed once two others were accepted after it', async () => {
    const { refused, accepted, told } = openRefusals();
    refused(1);
    accepted(1);
    expect(await told()).toEqual([null]);
    accepted(1);
    expect(await told()).toEqual(['believed']);
  });

  test('is believed at once if it is expected, however many there are, and counts as accepted for other statuses', async () => {
    const { refusals, refused, told } = openRefusals();
    refusals.expect({ absent: true, mayBeGone: 0, statuses: [409] });
    refused(1, { status: 403, isGone: false });
    refused(1_000);
    refused(1_000, { status: 409, isGone: false });
    expect(new Set(await told())).toEqual(new Set(['believed']));
    expect([refusals.isHolding, refusals.report?.streaks]).toEqual([false, []]);
  });

  test('stays open when nothing may be sent any more', async () => {
    const { refused, told } = openRefusals();
    const closed = new AbortController();
    refused(1, {}, closed.signal);
    closed.abort();
    refused(1, {}, closed.signal);
    expect(await told()).toEqual(['ended', 'ended']);
  });

  test('waits for the news of other processes, if there may be any', async () => {
    const { refused, accepted, passed, told } = openRefusals({ isAlone: false });
    refused(1);
    accepted(2);
    await passed(900);
    expect(await told()).toEqual([null]);
    await passed(200);
    expect(await told()).toEqual(['believed']);
  });
});

describe('an id that an earlier request may have deleted', () => {
  test('is no sign of anything, however many there are', async () => {
    const { refusals, pass, refused, passed, told } = openRefusals();
    refused(500, { isInDoubt: true });
    pass.expected = 500;
    await passed(500);
    expect(new Set(await told())).toEqual(new Set(['believed']));
    expect(refusals.report).toBeNull();
  });

  test('is asked for again with the others of a streak', async () => {
    const { refused, accepted, told } = openRefusals();
    refused(1, { isInDoubt: true });
    refused(10);
    accepted(2);
    expect(new Set(await told())).toEqual(new Set(['ask again']));
  });
});

describe('a streak of refusals that is over', () => {
  test('of nine is believed where many are refused, one of ten is asked for again', async () => {
    for (const [count, belief] of [
      [9, 'believed'],
      [10, 'ask again'],
    ] as const) {
      const { refused, accepted, told, thirdIsGone } = openRefusals();
      await thirdIsGone();
      refused(count);
      accepted(2);
      expect(new Set(await told()), `${count}`).toEqual(new Set([belief]));
    }
  });

  test('of three is asked for again where nearly all are accepted, one of two is believed', async () => {
    for (const [count, belief] of [
      [2, 'believed'],
      [3, 'ask again'],
    ] as const) {
      const { refused, accepted, told } = openRefusals();
      refused(1);
      accepted(1_000);
      await told();
      refused(count);
      accepted(2);
      expect(new Set((await told()).slice(1)), `${count}`).toEqual(new Set([belief]));
    }
  });

  test('is asked for again although slow answers to earlier requests come in between, and those that come late are, too', async () => {
    const { refusals, refused, accepted, passed, told } = openRefusals();
    for (let n = 0; n < 1_000; n++) refusals.accept(300);
    for (let n = 0; n < 10; n++) {
      refused(1);
      for (let m = 0; m < 3; m++) refusals.accept(300);
    }
    accepted(100);
    await passed(200);
    const late = refusals.judge({ ...notThere, id: 'late', ms: 250 }, open);
    accepted(2);
    expect(await late).toBe('ask again');
    expect(new Set(await told())).toEqual(new Set(['ask again']));
    // Sent after it, so it is one that is not there.
    await passed(200);
    const other = refusals.judge({ ...notThere, id: 'later', ms: 5 }, open);
    accepted(2);
    await passed(400);
    expect(await other).toBe('believed');
  });

  test('went on over a single accepted request: answers come a little out of order', async () => {
    const { refused, accepted, told } = openRefusals();
    for (let n = 0; n < 10; n++) {
      refused(1);
      accepted(1);
    }
    accepted(1);
    expect(new Set(await told())).toEqual(new Set(['ask again']));
  });

  test('is asked for again where other processes see one with the same status at the same time', async () => {
    for (const [status, belief] of [
      [404, 'ask again'],
      [403, 'believed'],
    ] as const) {
      const others = () => [5, 5, 4].map((longest) => reportOf(longest, 0, status));
      const { refused, accepted, passed, told } = openRefusals({ isAlone: false, others });
      await passed(100);
      refused(1);
      accepted(2);
      await passed(1_500);
      expect(await told(), `${status}`).toEqual([belief]);
    }
  });

  test('is believed when it is refused again, if something was accepted in between', async () => {
    const { refusals, refused, again, accepted, passed, told } = openRefusals();
    refused(10);
    const before = refusals.moment;
    accepted(30);
    await passed(3_000);
    for (let n = 0; n < 2; n++) {
      again(5, before);
      accepted(2);
    }
    expect((await told()).slice(10)).toEqual(Array(10).fill('believed'));
  });

  test('is asked for once more when it is refused again in another one: an API may be away twice', async () => {
    const { refusals, refused, again, accepted, told } = openRefusals();
    refused(10);
    const before = refusals.moment;
    accepted(20);
    refused(5);
    again(5, before);
    accepted(2);
    expect((await told()).slice(10)).toEqual(Array(10).fill('ask again'));
  });

  test('is told to other processes as long as it lasts, and two seconds longer', async () => {
    const { refusals, refused, accepted, passed } = openRefusals();
    refused(1);
    expect(refusals.report).toBeNull();
    refused(6);
    await passed(10_000);
    expect(refusals.report?.streaks).toEqual([{ status: 404, longest: 7, lasting: 7 }]);
    refused(1);
    accepted(2);
    expect(refusals.report).toEqual({
      resource: 'views',
      acceptedAgoMs: 0,
      streaks: [{ status: 404, longest: 8, lasting: 0 }],
    });
    await passed(2_100);
    expect(refusals.report).toBeNull();
  });
});

describe('twenty equal refusals in a row', () => {
  test.each([
    [
      404,
      true,
      'all_absent',
      /^24 ids in a row were not there \(404\) while nothing was accepted, such as id-0, id-1, id-2;.*--expect-absent/,
    ],
    [403, false, 'forbidden', /^24 ids in a row were forbidden \(403\).*resume with --expect 403$/],
    [418, false, 'refused', /^24 ids in a row were refused \(418\).*resume with --expect 418$/],
  ] as const)(
    'with %i let one id be sent at a time, and halt the run if four of these are refused',
    async (status, isGone, code, reason) => {
      const { refusals, refused, told, probeAll } = openRefusals();
      refused(19, { status, isGone });
      refused(19, { status: 400, isGone: false });
      expect(refusals.isHolding).toBe(false);
      refused(1, { status, isGone });
      expect(refusals.isHolding).toBe(true);
      expect(refusals.mayProbe).toBe(false);
      await probeAll({ status, isGone });
      const beliefs = await told();
      expect(beliefs).toHaveLength(43);
      expect(beliefs.map((belief) => belief === 'halt').filter(Boolean)).toHaveLength(24);
      expect(refusals.haltOf(status, isGone).code).toBe(code);
      expect(refusals.haltOf(status, isGone).reason).toMatch(reason);
    },
  );

  test('are over when one of these ids is accepted, and are asked for again', async () => {
    const { refusals, refused, accepted, passed, told } = openRefusals();
    refused(30);
    await passed(600);
    expect(refusals.mayProbe).toBe(true);
    refusals.probed();
    expect(refusals.mayProbe).toBe(false);
    refusals.accept(700); // sent before
    expect(refusals.isHolding).toBe(true);
    accepted(1);
    expect(refusals.isHolding).toBe(false);
    expect(new Set(await told())).toEqual(new Set(['ask again']));
  });

  test('are not counted by answers to requests that were sent before', async () => {
    const { refusals, refused, passed, told } = openRefusals();
    refused(20);
    await passed(2_000);
    refused(40, { ms: 2_500 });
    expect(await told()).toEqual(Array(60).fill(null));
    expect(refusals.isHolding).toBe(true);
  });

  test('are asked for again at once when the last one was refused with another status, which shows nothing', async () => {
    const { refusals, refused, passed, told } = openRefusals();
    refused(20, { status: 403, isGone: false });
    await passed(600);
    refusals.probed();
    await passed(200);
    refused(1, { ms: 50 });
    expect((await told()).filter((belief) => belief === 'probe')).toHaveLength(1);
    expect(refusals.mayProbe).toBe(false);
  });

  test('are asked for one at a time at the end of a list, where no others are left to send', async () => {
    const { refusals, pass, refused, again, passed, told } = openRefusals();
    refused(20);
    pass.expected = 20;
    const seen = new Set<number>();
    for (let ms = 0; ms < 20_000; ms += 100) {
      await passed(100);
      const beliefs = await told();
      const at = beliefs.findIndex((belief, n) => belief === 'probe' && !seen.has(n));
      if (at < 0) continue;
      seen.add(at);
      again(1, refusals.moment);
    }
    expect(seen.size).toBe(4);
    expect((await told()).filter((belief) => belief === 'halt')).toHaveLength(20);
  });

  test('count over all processes', async () => {
    const together = openRefusals({ isAlone: false, others: () => Array(3).fill(reportOf(5, 5)) });
    together.refused(5);
    await together.passed(100);
    expect(together.refusals.isHolding).toBe(true);
    const apart = openRefusals({ isAlone: false, others: () => Array(15).fill(reportOf(7, 1)) });
    apart.refused(4);
    await apart.passed(100);
    expect(apart.refusals.isHolding).toBe(false);
    const other = openRefusals({ isAlone: false, others: () => Array(3).fill(reportOf(15, 15, 403)) });
    other.refused(5);
    await other.passed(100);
    expect(other.refusals.isHolding).toBe(false);
  });

  test('are not in a row, nor any longer, where another process had a request accepted', async () => {
    let acceptedAgoMs = 500;
    const others = () => Array(3).fill({ ...reportOf(6, 6), acceptedAgoMs });
    const { refusals, refused, passed } = openRefusals({ isAlone: false, others });
    await passed(1_000);
    refused(5);
    await passed(100);
    expect([refusals.isHolding, refusals.report!.streaks[0]!.lasting]).toEqual([false, 5]);
    acceptedAgoMs = 1e9;
    await passed(1_000);
    expect(refusals.isHolding).toBe(true);
    acceptedAgoMs = 0;
    await passed(100);
    expect([refusals.isHolding, refusals.report!.streaks[0]!.lasting]).toEqual([false, 0]);
  });
});

describe('the same refusal of many ids, over several processes', () => {
  const random = (n: number) => (Math.imul(n + 1, 0x9e3779b1) ^ (Math.imul(n + 7, 0x85ebca6b) >>> 13)) >>> 0;

  /** Sends 20,000 ids of a list, 1,000 a second, to processes that hear of each other ten times a second; the number of them that halted the run. */
  async function halts({ processes, isRefused }: { processes: number; isRefused: (n: number) => boolean }) {
    let now = 0;
    let halted = 0;
    const all = Array.from({ length: processes }, () => new Refusals('views', () => now, false));
    for (const refusals of all) refusals.enter({ expected: 1_000 });
    for (let n = 0; n < 20_000 && halted === 0; n++) {
      const refusals = all[random(-n) % processes]!;
      now++;
      const mayBeSent = !refusals.isHolding || refusals.mayProbe;
      if (mayBeSent && refusals.isHolding) refusals.probed();
      if (mayBeSent && !isRefused(n)) refusals.accept(5);
      if (mayBeSent && isRefused(n))
        void refusals.judge({ ...notThere, id: `${n}` }, open).then((belief) => void (belief === 'halt' && halted++));
      if (n % 100 < 99) continue;
      const reports = all.map(({ report }) => report ?? []);
      for (const [at, one] of all.entries()) one.hear(reports.filter((_, of) => of !== at).flat(), now);
      await null;
    }
    return halted;
  }

  test.each([2, 4, 16, 50])(
    'of three in ten in random order does not halt a run with %i processes',
    async (processes) => {
      expect(await halts({ processes, isRefused: (n) => random(n) % 10 < 3 })).toBe(0);
    },
  );

  test.each([2, 4, 16, 50])('of all of them from one moment on does, with %i processes', async (processes) => {
    expect(await halts({ processes, isRefused: (n) => n > 50 || random(n) % 10 < 3 })).toBeGreaterThan(0);
  });
});

describe('the end of a list', () => {
  /** The last ids are not there, whatever is said of them: what is believed at first, and when they were asked for after the longer wait. */
  async function ending(count: number, { before = 0, accepted = 100, odd = {} as Partial<Refused> } = {}) {
    const list = openRefusals();
    for (let n = 0; n < before; n++) {
      list.refused(1);
      list.accepted(accepted / before);
    }
    if (before === 0) list.accepted(accepted);
    await list.told();
    list.refused(count, odd);
    list.pass.expected = count;
    await list.passed(3_000);
    const beliefs = (await list.told()).slice(before);
    return { ...list, beliefs: [...new Set(beliefs)] };
  }

  test.each([1, 2, 3, 8, 19])('asks for the last %i ids once more, where no other id was missing', async (count) => {
    expect((await ending(count)).beliefs).toEqual(['ask later']);
    expect((await ending(count, { accepted: 0 })).beliefs).toEqual(['ask later']);
  });

  test.each([
    [1, 2, 'believed'],
    [2, 3, 'ask later'],
    [2, 20, 'believed'],
    [3, 20, 'believed'],
    [5, 50, 'ask later'],
  ] as const)('believes the last %i ids if %i of 100 others were missing: %s', async (count, before, belief) => {
    expect((await ending(count, { before })).beliefs).toEqual([belief]);
  });

  test.each([
    [2, 'believed'],
    [3, 'ask later'],
  ] as const)('believes of %i ids as many as an earlier run may have deleted: %s', async (count, belief) => {
    const list = openRefusals();
    list.refusals.expect({ absent: false, mayBeGone: 2, statuses: [] });
    list.accepted(100);
    list.refused(count);
    list.pass.expected = count;
    await list.passed(3_000);
    expect(new Set(await list.told())).toEqual(new Set([belief]));
  });

  test('cannot say whether an id is there that is not there again, unless another one was accepted since', async () => {
    for (const [later, belief] of [
      [0, 'unproven'],
      [1, 'believed'],
    ] as const) {
      const { refusals, again, accepted, passed, told } = await ending(1);
      const { moment } = refusals;
      await passed(30_000);
      accepted(later);
      again(1, moment, { wasAskedLater: true });
      await passed(3_000);
      expect((await told()).at(-1), `${later}`).toBe(belief);
    }
  });

  test('believes an id that is not there again if another process has seen one accepted since', async () => {
    let others: RefusalReport[] = [];
    const { refusals, pass, refused, again, passed, told } = openRefusals({ isAlone: false, others: () => others });
    refused(5);
    pass.expected = 5;
    await passed(3_000);
    expect(await told()).toEqual(Array(5).fill('ask later'));
    const { moment } = refusals;
    await passed(10_000);
    others = [{ resource: 'views', acceptedAgoMs: 100, streaks: [] }];
    await passed(1_000);
    others = [];
    again(5, moment, { wasAskedLater: true });
    await passed(3_000);
    expect((await told()).slice(5)).toEqual(Array(5).fill('believed'));
  });

  test('believes any other refusal at once: it is no success', async () => {
    expect((await ending(19, { odd: { status: 403, isGone: false } })).beliefs).toEqual(['believed']);
  });
});

test('nothing is believed while an API refuses everything, in whatever order answers come', async () => {
  let seed = 1;
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  for (let round = 0; round < sized(50, 300); round++) {
    const { refused, accepted, told, passed, pass } = openRefusals();
    const odd = round % 2 === 0 ? {} : { status: 403, isGone: false };
    const [from, length] = [Math.floor(random() * 60), 20 + Math.floor(random() * 60)];
    // Each answer is up to two places early or late.
    const answers = Array.from({ length: 200 }, (_, n) => ({
      isRefused: n >= from && n < from + length,
      at: n + 2 * random(),
    }));
    for (const { isRefused } of answers.sort((a, b) => a.at - b.at)) {
      if (isRefused) refused(1, odd);
      else accepted(1);
    }
    pass.expected = 0;
    await passed(3_000);
    const all = await told();
    expect(all.filter((belief) => belief === 'believed').length, `round ${round}`).toBe(0);
  }
});
