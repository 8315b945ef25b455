import { expect, it } from 'vitest';
import type { Cause, Standing } from '../../../src/ledger/standing.ts';
import { StandingLog } from '../../../src/worker/standing-log.ts';

function openLog() {
  const lines: string[] = [];
  const add = (level: string) => (facts: object, message: string) => {
    const { run = 'target', why } = facts as { run?: string; why: string };
    lines.push(`${level} ${run} ${why}: ${message}`);
  };
  const log = { debug: add('debug'), info: add('info'), warn: add('warn'), error: add('error') };
  const standing = (why: Cause): Standing => ({ why, text: 'as it is', since: null, until: null, by: '', next: null });
  const standings = new StandingLog(log as never);
  const look = (seconds: number, held: Record<string, Cause> = {}) =>
    standings.observe(new Map(Object.entries(held).map(([key, why]) => [key, standing(why)])), seconds * 1_000);
  return { lines, look };
}

it('is one warning once a hold has lasted, and one line at its end', () => {
  const { lines, look } = openLog();
  for (const at of [0, 3, 19, 21, 60, 100]) look(at, { '': 'circuit' });
  look(103);
  look(106);
  expect(lines).toEqual(['warn target circuit: nothing is sent', 'info target circuit: a hold is over']);
});

it('is nothing for a wait of seconds, and little for one that comes again and again', () => {
  const { lines, look } = openLog();
  for (const at of [0, 9, 18]) look(at, { '': 'retry_after' });
  look(19);
  expect(lines).toEqual([]);
  for (let at = 60; at < 600; at += 60) {
    look(at, { '': 'limit' });
    look(at + 30, { '': 'limit' });
    look(at + 31);
  }
  expect(lines).toEqual(['warn target limit: nothing is sent', 'info target limit: a hold is over']);
});

it('names the run that waits alone, and another cause of the same', () => {
  const { lines, look } = openLog();
  look(0, { r1: 'window' });
  look(30, { r1: 'window' });
  look(33, { r1: 'run_quota' });
  look(60, { r1: 'run_quota' });
  expect(lines).toEqual([
    'warn r1 window: nothing is sent',
    'info r1 window: a hold is over',
    'warn r1 run_quota: nothing is sent',
  ]);
});
