import { expect, test } from 'vitest';
import { parseRun } from '../../../src/ledger/run.ts';
import { toTypeAnywhere } from '../../../src/model/to-type.ts';
import { type LocalView, SnapshotTaker } from '../../../src/operations/take-snapshot.ts';
import { lineText, panelText } from '../../../src/terminal/panel.ts';

const run = parseRun('r1', { state: 'running', baseUrl: 'http://api.example.com', ids: '10', rows: '10' });
const inside: LocalView = {
  sender: { inFlight: 0, stop: null },
  token: { waiting: '', refreshes: 0 },
  writeRejection: '',
};
const refused = 'its disk is full (MISCONF)';
const words = `Waiting: Redis rejects writes: ${refused}; nothing is sent until it accepts them again.`;

test('panel, line and JSON say why Redis refuses what this process writes', () => {
  const taker = new SnapshotTaker(run, { ...inside, writeRejection: refused }, toTypeAnywhere);
  expect(panelText(taker.take(), Number.POSITIVE_INFINITY)).toContain(words);
  expect(lineText(taker.take())).toContain(words);
  expect(taker.facts().standing).toMatchObject({ why: 'redis_writes', text: expect.stringContaining(refused) });
});

test('panel, line and JSON say when the window of a run opens, unless it is paused', () => {
  const opens = new Date(Date.now() + 3_600_000).toISOString().slice(11, 16);
  const closes = new Date(Date.now() + 7_200_000).toISOString().slice(11, 16);
  const closed = { ...run, window: `${opens}-${closes}` };
  const told = new RegExp(
    `^Waiting until .* \\((5\\d min( \\d+ s)?|1 h)\\): outside its window, continues [A-Z][a-z]{2} ${opens} UTC\\.`,
    'm',
  );
  const taker = new SnapshotTaker(closed, inside, toTypeAnywhere);
  expect(lineText(taker.take())).toContain(`outside its window, continues`);
  expect(panelText(taker.take(), Number.POSITIVE_INFINITY).replace(/^ +/gm, '')).toMatch(told);
  expect(taker.facts().standing).toMatchObject({ text: expect.stringMatching(`continues [A-Z][a-z]{2} ${opens} UTC`) });
  const paused = new SnapshotTaker({ ...closed, state: 'paused' }, inside, toTypeAnywhere).take();
  expect(paused.standings.map(({ why }) => why)).toEqual(['paused']);
});

test('so they do where that was seen from outside, and no longer than it lasts', () => {
  const taker = new SnapshotTaker(run, null, toTypeAnywhere);
  const around = { limiter: null, nextTryAt: null, stops: { target: null, processes: [], tokenless: [], alive: 1 } };
  taker.observeContext({ ...around, refused });
  expect(lineText(taker.take())).toContain(words);
  taker.observeContext({ ...around, refused: '' });
  expect(lineText(taker.take())).not.toContain('refuses');
});
