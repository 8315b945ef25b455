import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Absence, type Belief } from '../../../src/delete/absence.ts';
import type { Streaks } from '../../../src/limiter/run-pace.ts';
import { sized } from '../../support/size.ts';

const open = new AbortController().signal;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers(); // test files of a process share their timers
});

/** What one process knows of a run; `hear` is called ten times a second, as the watch of runs does. */
function openAbsence({ isAlone = true, others = () => [] as Streaks[] } = {}) {
  const absence = new Absence(() => performance.now(), isAlone);
  const pass = { expected: 1_000 };
  absence.enter(pass);
  const wait = async (ms: number) => {
    for (let at = 0; at < ms; at += 100) {
      await vi.advanceTimersByTimeAsync(100);
      absence.hear(others(), performance.now());
    }
  };
  const beliefs: (Belief | null)[] = [];
  const gone = (count: number, before: number | null = null, signal = open, isInDoubt = false) => {
    for (let n = 0; n < count; n++) {
      const at = beliefs.push(null) - 1;
      const asked = before === null ? 0 : 1;
      void absence.judge({ id: `id-${at}`, asked, before, isInDoubt, ms: 0 }, signal).then((belief) => {
        beliefs[at] = belief;
      });
    }
  };
  const told = async () => {
    await vi.advanceTimersByTimeAsync(0);
    return [...beliefs];
  };
  const deleted = (count: number) => {
    for (let n = 0; n < count; n++) absence.deleted(0);
  };
  /** A list of which about a third is not there. */
  const thirdIsGone = async () => {
    for (let n = 0; n < 300; n++) {
      void absence.judge({ id: 'other', asked: 0, before: null, isInDoubt: false, ms: 0 }, open);
      deleted(2);
    }
    deleted(30);
    await wait(100);
  };
  return { absence, pass, passed: wait, gone, deleted, told, thirdIsGone };
}

describe('an id that is not there', () => {
  test('is believed once two others were deleted after it', async () => {
    const { gone, deleted, told } = openAbsence();
    gone(1);
    deleted(1);
    expect(await told()).toEqual([null]);
    deleted(1);
    expect(await told()).toEqual(['believed']);
  });

  test('is believed at once with --expect-absent, however many there are', async () => {
    const { absence, gone, told } = openAbsence();
    absence.isExpected = true;
    gone(1_000);
    expect(new Set(await told())).toEqual(new Set(['believed']));
  });

  test('stays open when nothing may be sent any more', async () => {
    const { gone, told } = openAbsence();
    const closed = new AbortController();
    gone(1, null, closed.signal);
    closed.abort();
    gone(1, null, closed.signal);
    expect(await told()).toEqual(['ended', 'ended']);
  });

  test('is believed a little after the last answer of a list that is over', async () => {
    const { absence, pass, gone, passed, told } = openAbsence();
    gone(2);
    await passed(5_000);
    expect(await told()).toEqual([null, null]);
    pass.expected = 2;
    await passed(500);
    expect(await told()).toEqual(['believed', 'believed']);
    absence.leave(pass);
  });

  test('waits for the news of other processes, if there may be any', async () => {
    const { gone, deleted, passed, told } = openAbsence({ isAlone: false });
    gone(1);
    deleted(2);
    await passed(900);
    expect(await told()).toEqual([null]);
    await passed(200);
    expect(await told()).toEqual(['believed']);
  });
});

describe('an id that an earlier request may have deleted', () => {
  test('is no sign of anything, however many there are', async () => {
    const { absence, pass, gone, passed, told } = openAbsence();
    gone(500, null, open, true);
    pass.expected = 500;
    await passed(500);
    expect(new Set(await told())).toEqual(new Set(['believed']));
    expect(absence.reported).toBeNull();
  });

  test('is asked for again with the others of a streak', async () => {
    const { gone, told } = openAbsence();
    gone(1, null, open, true);
    gone(10);
    expect(new Set(await told())).toEqual(new Set(['ask again']));
  });
});

describe('a streak of ids that are not there', () => {
  test('of nine is believed where many are not there, one of ten is asked for again', async () => {
    const nine = openAbsence();
    await nine.thirdIsGone();
    nine.gone(9);
    nine.deleted(2);
    expect(new Set(await nine.told())).toEqual(new Set(['believed']));
    const ten = openAbsence();
    await ten.thirdIsGone();
    ten.gone(10);
    expect(new Set(await ten.told())).toEqual(new Set(['ask again']));
  });

  test('of three is asked for again where nearly all are there, one of two is believed', async () => {
    for (const [count, belief] of [
      [2, 'believed'],
      [3, 'ask again'],
    ] as const) {
      const { gone, deleted, told } = openAbsence();
      deleted(1_000);
      gone(count);
      deleted(2);
      expect(new Set(await told()), `${count}`).toEqual(new Set([belief]));
    }
  });

  test('is asked for again although slow answers to earlier requests come in between, and those that come late are, too', async () => {
    const { absence, gone, deleted, passed, told } = openAbsence();
    for (let n = 0; n < 1_000; n++) absence.deleted(300);
    for (let n = 0; n < 10; n++) {
      gone(1);
      for (let m = 0; m < 3; m++) absence.deleted(300);
    }
    deleted(100);
    await passed(200);
    const judged = absence.judge({ id: 'late', asked: 0, before: null, isInDoubt: false, ms: 250 }, open);
    deleted(2);
    expect(await judged).toBe('ask again');
    expect(new Set(await told())).toEqual(new Set(['ask again']));
    // Sent after it, so it is one that is not there.
    await passed(200);
    const other = absence.judge({ id: 'later', asked: 0, before: null, isInDoubt: false, ms: 5 }, open);
    deleted(2);
    await passed(400);
    expect(await other).toBe('believed');
  });

  test('goes on over a single deletion: answers come a little out of order', async () => {
    const { gone, deleted, told } = openAbsence();
    for (let n = 0; n < 10; n++) {
      gone(1);
      deleted(1);
    }
    expect(new Set(await told())).toEqual(new Set(['ask again']));
  });

  test('is asked for again where other processes see one at the same time', async () => {
    const { gone, deleted, passed, told } = openAbsence({
      isAlone: false,
      others: () => [5, 5, 4].map((longest) => ({ longest, lasting: 0 })),
    });
    gone(1);
    deleted(2);
    await passed(100);
    expect(await told()).toEqual(['ask again']);
  });

  test('is believed when it is not there again, if something was deleted in between', async () => {
    const { absence, gone, deleted, passed, told } = openAbsence();
    gone(10);
    const before = absence.deletions;
    deleted(30);
    await passed(3_000);
    for (let n = 0; n < 2; n++) {
      gone(5, before);
      deleted(2);
    }
    expect((await told()).slice(10)).toEqual(Array(10).fill('believed'));
  });

  test('is asked for once more when it is not there again in another one: an API may be away twice', async () => {
    const { absence, gone, deleted, told } = openAbsence();
    gone(10);
    const before = absence.deletions;
    deleted(20);
    gone(5);
    gone(5, before);
    deleted(2);
    expect((await told()).slice(10)).toEqual(Array(10).fill('ask again'));
  });

  test('of nineteen at the end of a list is believed when it is asked for twice, one of twenty halts the run', async () => {
    for (const [count, belief] of [
      [19, 'believed'],
      [20, 'halt'],
    ] as const) {
      const { absence, pass, gone, passed, told } = openAbsence();
      gone(count);
      pass.expected = count;
      gone(count, absence.deletions);
      await passed(3_000);
      expect(new Set((await told()).slice(count)), `${count}`).toEqual(new Set([belief]));
    }
  });

  test('of fifty halts the run, in all processes together, and says for example which', async () => {
    const { absence, gone, told } = openAbsence();
    gone(50);
    expect(await told()).toContain('halt');
    expect(absence.haltReason).toMatch(
      /^50 ids in a row were not there \(404 or 410\) while nothing was deleted, such as id-0, id-1, id-2; they/,
    );
    const together = openAbsence({ isAlone: false, others: () => Array(3).fill({ longest: 15, lasting: 15 }) });
    await together.thirdIsGone();
    together.gone(5);
    await together.passed(100);
    expect(await together.told()).toContain('halt');
    const apart = openAbsence({ isAlone: false, others: () => Array(15).fill({ longest: 7, lasting: 1 }) });
    apart.gone(5);
    await apart.passed(100);
    expect(await apart.told()).not.toContain('halt');
  });

  test('is told to other processes as long as it lasts, and two seconds longer', async () => {
    const { absence, gone, deleted, passed } = openAbsence();
    gone(1);
    expect(absence.reported).toBeNull();
    gone(6);
    await passed(10_000);
    expect(absence.reported).toEqual({ longest: 7, lasting: 7 });
    gone(1);
    deleted(2);
    expect(absence.reported).toEqual({ longest: 8, lasting: 0 });
    await passed(2_100);
    expect(absence.reported).toBeNull();
  });
});

test('nothing is believed while an API says of everything that it is not there, in whatever order answers come', async () => {
  let seed = 1;
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  for (let round = 0; round < sized(50, 300); round++) {
    const { gone, deleted, told, passed, pass } = openAbsence();
    const [from, length] = [Math.floor(random() * 60), 20 + Math.floor(random() * 60)];
    // Each answer is up to two places early or late.
    const answers = Array.from({ length: 200 }, (_, n) => ({
      isGone: n >= from && n < from + length,
      at: n + 2 * random(),
    }));
    for (const { isGone } of answers.sort((a, b) => a.at - b.at)) {
      if (isGone) gone(1);
      else deleted(1);
    }
    pass.expected = 0;
    await passed(3_000);
    const all = await told();
    expect(all.filter((belief) => belief === 'believed').length, `round ${round}`).toBe(0);
  }
});
