import { Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LivePanel } from '../../../src/terminal/live-panel.ts';
import { reading, snapshot, snapshotOf } from './snapshots.ts';

type Screen = { stream: NodeJS.WriteStream; text: () => string };

function screen(isTTY: boolean): Screen {
  const written: string[] = [];
  const writable = new Writable({
    write(chunk, _encoding, done) {
      written.push(String(chunk));
      done();
    },
  });
  const stream = Object.assign(writable, { isTTY, columns: 80, rows: 24, getColorDepth: () => 1 });
  return { stream: stream as unknown as NodeJS.WriteStream, text: () => written.join('') };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('LivePanel', () => {
  it('draws at once on a terminal, then four times a second, and stops', () => {
    const take = vi.fn(() => snapshot());
    const { stream, text } = screen(true);
    const panel = new LivePanel(stream, { TERM: 'xterm' }, take);
    panel.start();
    expect(text()).toContain('Run 20261120-1602-m4tz');
    vi.advanceTimersByTime(1_000);
    expect(take).toHaveBeenCalledTimes(5);
    panel.stop();
    vi.advanceTimersByTime(1_000);
    expect(take).toHaveBeenCalledTimes(6);
  });

  it.each([
    ['a pipe', false, 'xterm'],
    ['a dumb terminal', true, 'dumb'],
  ])('writes a plain line every ten seconds to %s while ids are settled', (_, isTTY, term) => {
    const { stream, text } = screen(isTTY);
    let { pending } = snapshot();
    const take = () => snapshot({ pending: --pending });
    const panel = new LivePanel(stream, { TERM: term }, take);
    panel.start();
    expect(text()).toBe('');
    vi.advanceTimersByTime(20_000);
    panel.stop();
    expect(text()).not.toContain('\u001b');
    expect(text().match(/\n/g)).toHaveLength(2);
  });

  it('says once why a run waits, again when that changes, and then once an hour, however the time passes', () => {
    const { stream, text } = screen(false);
    const lines = () => text().split('\n').length - 1;
    let reason = 'its window opens at 22:00';
    const startedAt = performance.now();
    const take = () =>
      snapshotOf(reading({ run: { state: 'paused', reason } }), {
        elapsedMs: performance.now() - startedAt,
        secondsLeft: Math.random(),
      });
    const panel = new LivePanel(stream, {}, take);
    panel.start();
    vi.advanceTimersByTime(30_000);
    expect(lines()).toBe(1);
    reason = 'the server asks to wait';
    vi.advanceTimersByTime(30_000);
    expect(lines()).toBe(2);
    vi.advanceTimersByTime(3_570_000);
    expect(lines()).toBe(2);
    vi.advanceTimersByTime(10_000);
    expect(lines()).toBe(3);
    panel.stop();
  });

  it('starts and stops once, however often it is told', () => {
    const take = vi.fn(() => snapshot());
    const panel = new LivePanel(screen(true).stream, {}, take);
    panel.start();
    panel.start();
    panel.stop();
    panel.stop();
    expect(take).toHaveBeenCalledTimes(2);
  });
});
