import { expect, test } from 'vitest';
import { type LocalView, SnapshotTaker } from '../../../src/commands/take-snapshot.ts';
import { parseRun } from '../../../src/ledger/run.ts';
import { lineText, panelText } from '../../../src/terminal/panel.ts';

const run = parseRun('r1', { state: 'running', baseUrl: 'http://api.example.com', ids: '10', rows: '10' });
const inside: LocalView = {
  senders: { inFlight: 0, stop: null },
  token: { waiting: '', refreshes: 0 },
  writeRejection: '',
};
const refused = 'its disk is full (MISCONF)';
const words = `Waiting: Redis rejects writes: ${refused}; nothing is sent until it accepts them again.`;

test('panel, line and JSON say why Redis refuses what this process writes', () => {
  const taker = new SnapshotTaker(run, { ...inside, writeRejection: refused });
  expect(panelText(taker.take(), Number.POSITIVE_INFINITY)).toContain(words);
  expect(lineText(taker.take())).toContain(words);
  expect(taker.facts().waiting).toMatchObject({ reason: expect.stringContaining(refused) });
});

test('so they do where that was seen from outside, and no longer than it lasts', () => {
  const taker = new SnapshotTaker(run, null);
  const around = { targets: [], nextTryAt: null, stops: { target: null, processes: [], alive: 0 } };
  taker.observeContext({ ...around, refused });
  expect(lineText(taker.take())).toContain(words);
  taker.observeContext({ ...around, refused: '' });
  expect(lineText(taker.take())).not.toContain('refuses');
});
