import { describe, expect, it } from 'vitest';
import type { Run } from '../../../src/ledger/run.ts';
import { lineText, panelText, wholePanelText } from '../../../src/terminal/panel.ts';
import type { Snapshot } from '../../../src/terminal/snapshot.ts';
import { plainStyle, textWidth } from '../../../src/terminal/style.ts';
import { reading, snapshot, snapshotOf } from './snapshots.ts';
import { target } from './target-states.ts';

const seen = (run: Partial<Run>, others: Parameters<typeof reading>[0] = {}) => snapshotOf(reading({ run, ...others }));
const lastOf = (shown: Snapshot) => panelText(shown, 200).split('\n').at(-1);
const lastLine = (changes: Parameters<typeof snapshot>[0]) => panelText(snapshot(changes), 200).split('\n').at(-1);

describe('panelText', () => {
  it('shows the run, its progress, its outcomes and what happens right now', () => {
    expect(panelText(snapshot(), 100).split('\n')).toEqual([
      'Run 20261120-1602-m4tz · api.example.com · 4 min 5 s',
      `${'█'.repeat(15)}${'░'.repeat(25)}  38.0 %   94,993 / 249,981   398/s   6–7 min left`,
      'deleted 94,021 · absent 958 · failed 14 · in flight 64',
      'Deleting.',
    ]);
  });

  it('says how far Redis is, and what that costs, if it is far', () => {
    const words = 'Redis is 1.5 s away: a run begins about 1 min 15 s later, and a pause or a stop takes up to 4 s';
    expect(lastLine({ redisMs: 1_500 })).toBe(`${words}; run expunge nearer to it.`);
    expect(wholePanelText(snapshot({ redisMs: 1_500 }), 200, plainStyle)).toContain(words);
    expect(lineText(snapshot({ redisMs: 62 }))).toMatch(/ · Redis is 62 ms away$/);
    for (const shown of [snapshot(), snapshot({ redisMs: 62, state: 'completed' })])
      expect(panelText(shown, 200)).not.toContain('Redis');
  });

  it.each([20, 40, 60, 80, 200])('keeps every line within %i columns', (width) => {
    const events = ['16:06:02  429: the server asks for 30 s. Everything waits; no id uses up an attempt.'];
    const paused = { ...seen({ state: 'paused', who: 'ana', reason: 'x'.repeat(300) }), events };
    const lines = panelText(paused, width).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
  });

  it('breaks a long sentence between its words', () => {
    const here = { stop: null, tokenWait: 'the token endpoint answers 503; trying again in 4 s' };
    expect(panelText(seen({}, { here }), 50).split('\n').slice(3)).toEqual([
      'Waiting: no token: the token endpoint answers 503;',
      'trying again in 4 s. Check the token:',
      '  expunge check \\',
      '    --base-url https://api.example.com',
    ]);
  });

  it.each([
    [200, ['Paused by ana: lunch. Resume with: ./expunge resume r1 --config c --state-dir /srv/state']],
    [70, ['Paused by ana: lunch. Resume with:', '  ./expunge resume r1 --config c --state-dir /srv/state']],
    [40, ['Paused by ana: lunch. Resume with:', '  ./expunge resume r1 --config c \\', '    --state-dir /srv/state']],
  ])('has in %i columns a command that a shell takes as it stands there', (width, lines) => {
    const advice = 'Resume with: ./expunge resume r1 --config c --state-dir /srv/state';
    const paused = { ...seen({ state: 'paused', who: 'ana', reason: 'lunch' }), advice };
    expect(panelText(paused, width).split('\n').slice(3)).toEqual(lines);
  });

  it('has the command on its own line if the sentence before it is wide, though it has few characters', () => {
    const advice = 'Resume with: ./expunge resume r1';
    const paused = { ...seen({ state: 'paused', who: 'ana', reason: '出力'.repeat(5) }), advice };
    const sentence = `Paused by ana: ${'出力'.repeat(5)}. Resume with:`;
    expect(panelText(paused, 60).split('\n').slice(3)).toEqual([sentence, '  ./expunge resume r1']);
  });

  it('leaves the bar out where there is no room for it', () => {
    expect(panelText(snapshot(), 50)).not.toContain('█');
  });

  it('names the rare outcomes once they happen', () => {
    const counts = { ...snapshot().counts, gone_unconfirmed: 2 };
    expect(panelText(snapshot({ counts }), 100)).toContain('absent 958 · gone_unconfirmed 2 · failed 14');
  });

  it('says why nothing is sent and for how long', () => {
    const reason = 'the server answered 429 and sent Retry-After 30';
    const hold = { kind: 'retry_after' as const, reason, leftMs: 21_000, since: null };
    expect(lastOf(seen({}, { limiter: target({ hold }) }))).toMatch(
      /^Waiting 21 s: the server answered 429 and sent Retry-After 30\. /,
    );
  });

  it('says who paused the run, why, and how it goes on', () => {
    const words = lastOf(seen({ state: 'paused', who: 'ana@laptop', reason: 'release window' }));
    expect(words).toBe('Paused by ana@laptop: release window. Resume with: expunge resume 20261120-1602-m4tz');
  });

  it('tells to start the same command again where an interrupt left the run', () => {
    const paused = { state: 'paused', by: 'interrupt', who: 'ana@laptop', reason: 'interrupted by SIGINT' } as const;
    const words = lastOf(seen({ ...paused, command: './expunge run ids.csv' }));
    expect(words).toBe('Paused by ana@laptop: interrupted by SIGINT. Resume with: ./expunge run ids.csv');
  });

  it('says of a completed run whether it found none of its ids', () => {
    const completed = { state: 'completed', ids: 3, pending: 0 } as const;
    expect(lastLine({ ...completed, conclusion: 'well' })).toBe('Completed.');
    expect(lastLine({ ...completed, conclusion: 'none_there' })).toBe(
      'Completed, but nothing shows that any of its ids was there.',
    );
  });

  it('shows no pace while nothing moves', () => {
    expect(panelText(seen({ state: 'paused' }), 100)).not.toMatch(/\/s|left/);
  });

  it('gives a terminal nothing to obey that stands in a reason', () => {
    expect(lastOf(seen({ state: 'halted', reason: 'a\u001b[2Jb\r\nc\u0007' }))).toMatch(
      /^Halted: a\\u001b\[2Jb c\\u0007\. /,
    );
  });

  it('shows only the last five events', () => {
    const events = ['1', '2', '3', '4', '5', '6'];
    expect(panelText(snapshot({ events }), 80).split('\n').slice(4)).toEqual(['2', '3', '4', '5', '6']);
  });

  it('is full and not broken for a run without ids', () => {
    expect(panelText(snapshot({ ids: 0, pending: 0, state: 'completed' }), 80)).toContain('100 %   0 / 0');
  });
});

describe('lineText', () => {
  it('says all of it in one line', () => {
    expect(lineText(snapshot())).toBe(
      '20261120-1602-m4tz: 38.0 %, 94,993 of 249,981 · deleted 94,021 · absent 958 · failed 14 · 398/s · 6–7 min left · Deleting.',
    );
  });
});

describe('the whole panel', () => {
  const reason = `${'the legal team has to agree first, '.repeat(9)}then it goes on`;
  const paused = snapshotOf(reading({ run: { state: 'paused', by: 'operator', who: 'ana', reason } }));

  it.each([60, 80])('is broken between words at %i columns, and loses none of them', (width) => {
    const text = wholePanelText(paused, width, plainStyle);
    for (const line of text.split('\n')) expect(textWidth(line)).toBeLessThanOrEqual(width);
    expect(text.replaceAll('\n', ' ')).toContain(`Paused by ana: ${reason}.`);
  });

  it('has the command on lines of its own, as a shell takes it', () => {
    const lines = wholePanelText(paused, 60, plainStyle).split('\n');
    expect(lines.at(-1)).toBe(`  expunge resume ${paused.runId}`);
  });
});
