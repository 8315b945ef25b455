import { expect, it } from 'vitest';
import type { KnownTarget } from '../../../src/ledger/known-targets.ts';
import { targetOf } from '../../../src/model/target.ts';
import { toTypeAnywhere } from '../../../src/model/to-type.ts';
import { notReachedText, startedText, stoppedText } from '../../../src/terminal/stop-text.ts';

const telling = { toType: toTypeAnywhere };

const now = Date.UTC(2026, 10, 20, 16, 0);
const stop = { by: 'operator', who: 'ana', reason: 'they call us', at: now - 60_000 } as const;

function known(account: string, live: KnownTarget['live'] = {}, alive = 0): KnownTarget {
  const stops = { target: stop, processes: [], tokenless: [], alive };
  return { ...targetOf('https://api.example.com', account), live, stops };
}

it('a stop is told with the live runs and processes that it reaches', () => {
  const some = known('a b', { running: 2, paused: 1 }, 3);
  expect(stoppedText({ before: null, isChanged: true, known: some }, now, telling)).toBe(
    `Stopped all runs of https://api.example.com as account a b. Sending stops within a second.
  It reaches 3 live runs (2 running, 1 paused) and 3 processes.
  Resume: expunge start-all --base-url https://api.example.com --account 'a b'`,
  );
  const one = stoppedText({ before: stop, isChanged: false, known: known('', { running: 1 }, 1) }, now, telling);
  expect(one).toContain('are stopped already, by ana: they call us, since ');
  expect(one).toContain('It reaches 1 live run (running) and 1 process.');
});

it('a start is told with what had stopped it, and with the processes that a file still stops', () => {
  const file = { by: 'file', who: 'the file stop', reason: '', at: now } as const;
  const held = { ...known(''), stops: { target: null, processes: [file], tokenless: [], alive: 1 } };
  expect(startedText({ before: stop, isChanged: true, known: held }, now, toTypeAnywhere)).toBe(
    `The runs of https://api.example.com continue, after 1 min; they were stopped by ana: they call us.
warning: one process stays stopped by the file stop`,
  );
});

it('targets that were missed are named with the command for each, five at most', () => {
  const [first, second] = notReachedText('stop-all', [known('acme', { paused: 1 })], toTypeAnywhere).split('\n');
  expect(first).toBe('  https://api.example.com as account acme: 1 live run (paused) and 0 processes');
  expect(second).toBe('    expunge stop-all --base-url https://api.example.com --account acme');
  const many = Array.from({ length: 7 }, (_, n) => known(`a${n}`));
  expect(notReachedText('start-all', many, toTypeAnywhere)).toContain('as account a4: by ana: they call us\n');
  expect(notReachedText('start-all', many, toTypeAnywhere).split('\n').at(-1)).toBe('  and 2 others: expunge runs');
});
