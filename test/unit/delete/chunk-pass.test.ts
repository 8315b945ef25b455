import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Refusals } from '../../../src/delete/refusals.ts';
import { makeVerdictTable, noContent } from '../../../src/delete/verdict.ts';
import { countAttempts, isDoubtful, isSettled, mark, settle, unmark, untouched } from '../../../src/ledger/cell.ts';
import { codeOfStatus } from '../../../src/model/outcome.ts';
import { openPass, settleDown, startMs } from './open-pass.ts';
import { givenToken, openLimits, status, timeout } from './tries.ts';

const deleted = settle('deleted', 1, codeOfStatus(204));
const absent = settle('absent', 2, codeOfStatus(404));
const three = [untouched, untouched, untouched];

/** Of these events, those that are requests. */
function sends(events: readonly string[]): string[] {
  return events.filter((event) => event.startsWith('send'));
}

/** What a pass depends on, which may change while a request of it waits. */
function changeable() {
  let isOpen = true;
  const limits = openLimits();
  const deps = { isOpenAt: () => isOpen, limits };
  return {
    deps,
    shut: () => {
      isOpen = false;
    },
    block: () => void Object.assign(limits, { isBlocked: true, isHeld: true }),
  };
}

describe('a pass', () => {
  /** @invariant mark-before-request: A mark is written before its request is sent. The marks keep `absent` true after `kill -9`. */
  test('marks each id before its request leaves, and merges its result', async () => {
    const { start, events, ledger, measured, notes } = openPass(three);
    await start().run;
    expect(events).toEqual(['mark 0,1,2', 'send 0', 'send 1', 'send 2', 'merge 0,1,2']);
    expect(ledger.cells[0]).toEqual([deleted, deleted, deleted]);
    expect(measured).toEqual(['204 7', '204 7', '204 7']);
    expect(notes).toEqual([]);
  });

  test('sends the ids that are due and no other', async () => {
    const { start, events, outcomes } = openPass(three);
    const { run, pass } = start([2, 0]);
    await run;
    expect(sends(events)).toEqual(['send 2', 'send 0']);
    expect(outcomes()).toEqual(['deleted', 'pending', 'deleted']);
    expect(pass.cells).toEqual([deleted, untouched, deleted]);
  });

  test('does not send an id that somebody else has settled meanwhile', async () => {
    const { start, events, ledger } = openPass(three, { ledgerCells: [untouched, absent, untouched] });
    const { run, pass } = start();
    await run;
    expect(sends(events)).toEqual(['send 0', 'send 2']);
    expect(ledger.cells[0]![1]).toBe(absent);
    expect(pass.cells[1]).toBe(absent);
  });

  test('ends where all of its ids turn out to be settled', async () => {
    const { start, events } = openPass(three, { ledgerCells: [absent, absent, absent] });
    const { run } = start();
    await run;
    expect(events).toEqual(['mark 0,1,2']);
  });

  test('with nothing due asks nothing of the ledger', async () => {
    const { start, events } = openPass(three);
    await start([]).run;
    expect(events).toEqual([]);
  });

  test('counts a 204 as one attempt more than the id had', async () => {
    const { start, ledger } = openPass([unmark(mark(untouched), 2, false)]);
    await start().run;
    expect(countAttempts(ledger.cells[0]![0]!)).toBe(3);
  });

  test('takes a 204 that says something about the rate for the same success', async () => {
    const { start, ledger } = openPass([untouched], { server: () => status(204, { 'ratelimit-remaining': '1' }) });
    await start().run;
    expect(ledger.cells[0]).toEqual([deleted]);
  });

  test('keeps what the server said of an id that is no longer open, unless it was deleted at once', async () => {
    const server = (index: number) => [noContent, status(404), status(400)][index]!;
    const { start, notes, outcomes } = openPass(three, { server });
    await start().run;
    expect(outcomes()).toEqual(['deleted', 'absent', 'failed']);
    expect(notes.sort()).toEqual(['1 absent 404', '2 failed 400']);
  });
});

describe('a mark', () => {
  test('lives for a second: an older one is withdrawn instead of being used', async () => {
    const { start, events, waiting, ledger, leaveAll } = openPass([untouched], { leavesAtOnce: false });
    const { run } = start();
    await settleDown();
    expect(waiting).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1_000);
    leaveAll();
    await vi.advanceTimersByTimeAsync(100);
    expect(events).toEqual(['mark 0', 'merge 0', 'mark 0']);
    expect(ledger.cells[0]).toEqual([mark(unmark(mark(untouched), 0, false))]);
    await vi.advanceTimersByTimeAsync(899); // of the new one
    leaveAll();
    await run;
    expect(events.slice(3)).toEqual(['send 0', 'merge 0']);
  });

  test('of one that waits is used until its second is over', async () => {
    const { start, events, leaveAll } = openPass([untouched], { leavesAtOnce: false });
    const { run } = start();
    await vi.advanceTimersByTimeAsync(999);
    leaveAll();
    await run;
    expect(sends(events)).toEqual(['send 0']);
  });

  test.each([
    ['the gate of the run is closed', () => ({ isOpenAt: () => false })],
    ['the target asked to wait', () => ({ limits: openLimits({ isBlocked: true, isHeld: true }) })],
    ['there is no token', () => ({ token: givenToken({ authorization: () => null }) })],
  ])('is withdrawn, with nothing sent and no doubt, where %s', async (_, odd) => {
    const { start, events, ledger, leaveAll, closed } = openPass([untouched], { ...odd(), leavesAtOnce: false });
    const { run, pass } = start();
    await settleDown();
    leaveAll();
    await settleDown();
    expect(events).toEqual(['mark 0', 'merge 0', 'mark 0']);
    closed.abort();
    await run;
    expect(sends(events)).toEqual([]);
    expect(ledger.cells[0]![0]! & 0x10).toBe(0);
    expect(isDoubtful(pass.cells[0]!)).toBe(false);
  });

  test.each<[string, (odd: ReturnType<typeof changeable> & { closed: AbortController }) => void]>([
    ['the gate of the run has closed', (odd) => odd.shut()],
    ['the target asks to wait by now', (odd) => odd.block()],
    ['nothing of the chunk may be sent any more', (odd) => odd.closed.abort()],
  ])('of a request with a connection at last says that it may no longer be sent, once %s', async (_, change) => {
    const odd = changeable();
    const { start, waiting, closed } = openPass([untouched], { ...odd.deps, leavesAtOnce: false });
    const { run } = start();
    await settleDown();
    const [request] = waiting.splice(0);
    expect(request!.authorize(Date.now())).toBe('Bearer t');
    vi.setSystemTime(Date.now() + 5_000); // a mark outlives its second while its request waits for the connection
    expect(request!.maySend()).toBe(true);
    change({ ...odd, closed });
    expect(request!.maySend()).toBe(false);
    closed.abort();
    request!.answered(null, 0);
    await run;
  });

  test('tells of a 204 with a body, of the first request for an id and of a later one, also after the pass', async () => {
    const server = (index: number, n: number) => (index === 1 && n === 1 ? status(409) : noContent);
    let bodies = 0;
    const odd = { server, leavesAtOnce: false, noteBody: () => void bodies++ };
    const { start, waiting, leaveAll } = openPass([untouched, untouched], odd);
    const { run } = start();
    await settleDown();
    const all = [...waiting];
    leaveAll();
    await vi.advanceTimersByTimeAsync(1_000);
    all.push(...waiting);
    leaveAll();
    await run;
    expect([all.map(({ path }) => path), bodies]).toEqual([['/0', '/1', '/1'], 0]);
    all[0]!.noteBody();
    all[2]!.noteBody();
    expect(bodies).toBe(2);
  });

  test('is asked for again for an id that is to be sent once more', async () => {
    const server = (_: number, n: number) => (n < 3 ? status(429) : noContent);
    const { start, events, ledger } = openPass([untouched], { server });
    const { run } = start();
    await vi.advanceTimersByTimeAsync(1_000);
    await run;
    expect(events.join('; ')).toBe('mark 0; send 0; merge 0; mark 0; send 0; merge 0; mark 0; send 0; merge 0');
    expect(ledger.cells[0]).toEqual([deleted]);
  });

  test('stands through the quick tries, each of which may leave for a second from its own submission', async () => {
    const server = (_: number, n: number) => (n < 3 ? status(409) : noContent);
    const { start, events, ledger, leaveAll } = openPass([untouched], { server, leavesAtOnce: false, random: () => 1 });
    const { run } = start();
    await vi.advanceTimersByTimeAsync(999);
    leaveAll();
    await vi.advanceTimersByTimeAsync(400 + 999);
    leaveAll();
    await vi.advanceTimersByTimeAsync(800 + 999);
    leaveAll();
    await run;
    expect(events).toEqual(['mark 0', 'send 0', 'send 0', 'send 0', 'merge 0']);
    expect(countAttempts(ledger.cells[0]![0]!)).toBe(3);
  });

  test('of a quick try that waited too long is withdrawn with the attempts there were', async () => {
    const { start, events, ledger, leaveAll, closed } = openPass([untouched], {
      server: () => status(409),
      leavesAtOnce: false,
    });
    const { run } = start();
    await settleDown();
    leaveAll();
    await vi.advanceTimersByTimeAsync(200 + 1_000);
    closed.abort();
    leaveAll();
    await run;
    expect(sends(events)).toEqual(['send 0']);
    expect(ledger.cells[0]).toEqual([unmark(mark(untouched), 1, false)]);
  });
});

describe('batches', () => {
  const many = (n: number) => new Array<number>(n).fill(untouched);

  test('follow each other: the results of one travel with the marks of the next', async () => {
    const { start, events } = openPass(many(5), { batchSize: 2 });
    await start().run;
    expect(events.filter((event) => !event.startsWith('send'))).toEqual([
      ...['mark 0,1', 'merge 0,1', 'mark 2,3', 'merge 2,3', 'mark 4', 'merge 4'],
    ]);
  });

  test('are asked for once at most a quarter of the last one has no result', async () => {
    const { start, events, waiting, leaveAll } = openPass(many(12), { batchSize: 8, leavesAtOnce: false });
    const { run } = start();
    await settleDown();
    const leave = async (n: number) => {
      const rest = waiting.splice(n);
      leaveAll();
      waiting.push(...rest);
      await settleDown();
    };
    await leave(5);
    expect(events.filter((event) => event.startsWith('mark'))).toEqual(['mark 0,1,2,3,4,5,6,7']);
    await leave(1);
    expect(events.slice(-2)).toEqual(['merge 0,1,2,3,4,5', 'mark 8,9,10,11']);
    await leave(99);
    await run;
  });

  test('have no more marks than there is room for, and go on when somebody says that there is more', async () => {
    const { start, events, way, wakers } = openPass(three, { room: 0 });
    const { run } = start();
    await settleDown();
    expect(events).toEqual([]);
    way.hasRoomFor = 2;
    for (const wake of wakers) wake();
    await settleDown();
    expect(events.slice(0, 1)).toEqual(['mark 0,1']);
    await run;
    expect(sends(events)).toHaveLength(3);
    expect(wakers.size).toBe(0);
  });

  test('look for room ten times a second though nobody says that there is any', async () => {
    const { start, events, way } = openPass([untouched], { room: 0 });
    const { run } = start();
    await settleDown();
    way.hasRoomFor = 1;
    await vi.advanceTimersByTimeAsync(99);
    expect(events).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await run;
    expect(sends(events)).toHaveLength(1);
  });

  test('do not keep results waiting for stragglers longer than a tenth of a second', async () => {
    const { start, events, waiting, leaveAll } = openPass(three, { leavesAtOnce: false });
    const { run } = start();
    await settleDown();
    const [, ...stragglers] = waiting.splice(0).map((request, index) => {
      if (index === 0) waiting.push(request);
      return request;
    });
    leaveAll();
    await vi.advanceTimersByTimeAsync(100);
    expect(events).toEqual(['mark 0,1,2', 'send 0', 'merge 0']);
    waiting.push(...stragglers);
    leaveAll();
    await run;
    expect(events.at(-1)).toBe('merge 1,2');
  });

  test('have their places kept while they are being marked, also where the ledger fails', async () => {
    const { start, expected } = openPass(three);
    await start().run;
    expect(expected).toEqual([3, -3, 0, -0]);
    const broken = openPass(three, { update: () => Promise.reject(new Error('Redis is away')) });
    await expect(broken.start().run).rejects.toThrow('Redis is away');
    expect(broken.expected).toEqual([3, -3]);
  });
});

describe('the pass ends', () => {
  test('when nothing of the chunk may be sent any more: what waits stays, what is on its way is merged', async () => {
    const { start, events, waiting, ledger, leaveAll, closed } = openPass(three, { leavesAtOnce: false });
    const { run } = start();
    await settleDown();
    const stay = waiting.splice(1);
    leaveAll();
    waiting.push(...stay);
    closed.abort();
    await run;
    expect(events).toEqual(['mark 0,1,2', 'send 0', 'merge 1,2,0']);
    const stayed = unmark(mark(untouched), 0, false);
    expect(ledger.cells[0]).toEqual([deleted, stayed, stayed]);
  });

  test('at once where it was told to before it began', async () => {
    const { start, events, closed } = openPass(three);
    closed.abort();
    await start().run;
    expect(events).toEqual([]);
  });

  test('in the midst of a wait between two quick tries', async () => {
    const { start, ledger, closed } = openPass([untouched], { server: () => timeout, random: () => 1 });
    const { run } = start();
    await vi.advanceTimersByTimeAsync(399);
    closed.abort();
    await run;
    expect(ledger.cells[0]).toEqual([unmark(mark(untouched), 1, true)]);
  });

  test('without a further wait for an id whose answer comes after that', async () => {
    const { start, ledger, closed, sent } = openPass([untouched], {
      server: () => {
        closed.abort();
        return status(409);
      },
    });
    await start().run;
    expect(sent.get(0)).toBe(1);
    expect(ledger.cells[0]).toEqual([unmark(mark(untouched), 1, false)]);
  });

  test.each([
    ['a stop', { isStopped: true }],
    ['a wait of more than 5 s that the target asked for', { throttledMs: 5_001 }],
  ])('because of %s', async (_, odd) => {
    const { start, events } = openPass(three, { limits: openLimits(odd) });
    await start().run;
    expect(events).toEqual([]);
  });

  test("because of a wait of more than 5 s for a permit of the run's own rate", async () => {
    const { start, events, way } = openPass(three);
    way.waitMs = 5_001;
    await start().run;
    expect(events).toEqual([]);
  });

  test('not because of waits of 5 s', async () => {
    const { start, events, way } = openPass(three, { limits: openLimits({ throttledMs: 5_000 }) });
    way.waitMs = 5_000;
    await start().run;
    expect(sends(events)).toHaveLength(3);
  });

  test('after 30 s, with the ids that never had their turn', async () => {
    const { start, events } = openPass(three, { room: 0 });
    const started = start();
    await vi.advanceTimersByTimeAsync(30_000);
    expect(started.isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(100);
    expect(started.isOver).toBe(true);
    expect(events).toEqual([]);
  });

  test('after 2 s where it is in the way of another run', async () => {
    let shouldYield = true;
    const { start } = openPass(three, { room: 0, shouldYield: () => shouldYield });
    const inTheWay = start();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(inTheWay.isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(100);
    expect(inTheWay.isOver).toBe(true);
    shouldYield = false;
    const alone = start();
    await vi.advanceTimersByTimeAsync(2_100);
    expect(alone.isOver).toBe(false);
    shouldYield = true;
    await vi.advanceTimersByTimeAsync(100);
    expect(alone.isOver).toBe(true);
  });

  test.each(['paused', 'halted', 'cancelling'] as const)(
    'when the run is found %s: what was not marked stays',
    async (state) => {
      const { start, events, ledger } = openPass(three);
      ledger.state = state;
      const { run, pass } = start();
      await run;
      expect(events).toEqual(['mark 0,1,2']);
      expect(pass.cells).toEqual(three);
    },
  );

  test('when another holder has the chunk: it gets no marks and sends nothing', async () => {
    const { start, events, ledger } = openPass(three);
    ledger.open.set(0, 2);
    await start().run;
    expect(events).toEqual(['mark 0,1,2']);
  });

  test('with the results in hand, after a run is found halted', async () => {
    const { start, events, ledger, outcomes } = openPass(three, {
      batchSize: 2,
      server: () => {
        ledger.state = 'halted';
        return noContent;
      },
    });
    await start().run;
    expect(events).toEqual(['mark 0,1', 'send 0', 'send 1', 'merge 0,1', 'mark 2']);
    expect(outcomes()).toEqual(['deleted', 'deleted', 'pending']);
  });
});

describe('while a refused id waits to be believed, the pass', () => {
  /** A pass whose requests leave when the test lets them, as with a rate of its own; the watch of runs brings news ten times a second. */
  function openSlow(ids: number, code: number, odd: Parameters<typeof openPass>[1] = {}) {
    const refusals = new Refusals('annotations', () => Date.now(), true);
    const halts: string[] = [];
    const server = () => status(code);
    const all = { server, leavesAtOnce: false, refusals, halt: (halt: string) => void halts.push(halt), ...odd };
    const opened = openPass(Array<number>(ids).fill(untouched), all);
    const hearing = setInterval(() => refusals.hear([], Date.now()), 100);
    onTestFinished(() => clearInterval(hearing));
    const permitsAfter = async (ms: number) => {
      await vi.advanceTimersByTimeAsync(ms);
      opened.way.hasRoomFor = 1;
      await vi.advanceTimersByTimeAsync(100);
      opened.way.hasRoomFor = 0;
      opened.leaveAll();
      await vi.advanceTimersByTimeAsync(0);
    };
    return { ...opened, halts, permitsAfter };
  }

  test('goes on although the rate of the run brings no permit for an hour', async () => {
    const { start, way, permitsAfter, sent, outcomes } = openSlow(1, 404, { room: 0 });
    const { run } = start();
    await permitsAfter(0);
    way.waitMs = 3_600_000;
    await permitsAfter(3_600_000);
    expect(sent.get(0)).toBe(2);
    await vi.advanceTimersByTimeAsync(3_000);
    await run;
    expect(outcomes()).toEqual(['unknown']);
  });

  test.each([
    ['6 s', 6_000],
    ['3 s', 3_000],
  ])('sees refusals in a row although there is one request per %s', async (_, everyMs) => {
    const { start, way, permitsAfter, halts, outcomes, closed } = openSlow(40, 403, { room: 0 });
    start();
    for (let n = 0; n < 30 && halts.length === 0; n++) {
      await permitsAfter(n === 0 ? 0 : everyMs);
      way.waitMs = everyMs;
    }
    expect(new Set(halts)).toEqual(new Set(['forbidden']));
    expect(new Set(outcomes())).toEqual(new Set(['pending']));
    closed.abort();
  });

  test('ends at once with all these ids open where the target asks for a long wait', async () => {
    const limits = openLimits();
    const { start, outcomes, events } = openSlow(25, 404, { limits, leavesAtOnce: true });
    const started = start();
    await vi.advanceTimersByTimeAsync(100);
    expect(sends(events)).toHaveLength(25);
    expect(started.isOver).toBe(false);
    Object.assign(limits, { throttledMs: 60_000 });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(started.isOver).toBe(true);
    expect(new Set(outcomes())).toEqual(new Set(['pending']));
  });
});

test('an id that is told to wait is not sent again in the pass, and is due when its wait is over', async () => {
  const server = (index: number) => (index === 0 ? status(423) : noContent);
  const { start, sent, ledger } = openPass(three, { server, verdicts: makeVerdictTable('423=wait') });
  const { run, pass } = start();
  await vi.advanceTimersByTimeAsync(40);
  await run;
  expect(sent.get(0)).toBe(1);
  expect(isSettled(ledger.cells[0]![0]!)).toBe(false);
  expect([...pass.waitsUntil]).toEqual([[0, startMs + 5_000]]);
});

test('an id that used up its quick tries is left to a later pass', async () => {
  const { start, sent, ledger, measured } = openPass([untouched], { server: () => status(503) });
  const { run, pass } = start();
  await vi.advanceTimersByTimeAsync(10_000);
  await run;
  expect(sent.get(0)).toBe(3);
  expect(measured).toEqual(['503 7', '503 7', '503 7']);
  expect(ledger.cells[0]).toEqual([unmark(mark(untouched), 3, true)]);
  expect(pass.waitsUntil.size).toBe(0);
});

test('requests carry the path of their id, the header of the token and the statuses that mean "not now"', async () => {
  const { start, waiting, leaveAll } = openPass([untouched], {
    leavesAtOnce: false,
    verdicts: makeVerdictTable('423=wait'),
  });
  const { run } = start();
  await settleDown();
  const [request] = waiting;
  expect(request).toMatchObject({ path: '/0', waitStatuses: new Set([423, 429]) });
  expect(request!.authorize(Date.now())).toBe('Bearer t');
  leaveAll();
  await run;
});

describe('a chunk whose DELETE is never repeated', () => {
  const isNeverRepeated = true;

  test('has no request for an id that an earlier holder may have sent', async () => {
    const cells = [untouched, mark(untouched), unmark(mark(untouched), 1, true), unmark(mark(untouched), 1, false)];
    const { start, sent, outcomes } = openPass(cells, { isNeverRepeated });
    await start().run;
    expect(outcomes()).toEqual(['deleted', 'unknown', 'unknown', 'deleted']);
    expect([...sent.keys()]).toEqual([0, 3]);
  });

  test('sends them by default', async () => {
    const { start, sent } = openPass([untouched, mark(untouched)]);
    await start().run;
    expect([...sent.keys()]).toEqual([0, 1]);
  });

  test('has one request for an id without a clear answer', async () => {
    const { start, sent, outcomes } = openPass([untouched, untouched], {
      isNeverRepeated,
      server: (index) => (index === 0 ? timeout : status(503)),
    });
    await start().run;
    expect([outcomes(), [...sent.values()]]).toEqual([
      ['unknown', 'unknown'],
      [1, 1],
    ]);
  });
});
