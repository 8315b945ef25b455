import { EventEmitter } from 'node:events';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Channel, openCommandChannel } from '../../../src/worker/command-channel.ts';
import type { ToWorker, WorkerOrder } from '../../../src/worker/run-workers.ts';

const loan = { header: 'Bearer a', waiting: '' };
const order = { worker: 1, run: 'r' } as WorkerOrder;

function open({ connected = true } = {}) {
  const sent: unknown[] = [];
  const source = Object.assign(new EventEmitter(), { connected, send: (said: unknown) => sent.push(said) > 0 });
  const channel = openCommandChannel(source as unknown as Channel);
  onTestFinished(() => channel.close());
  const hear = (message: ToWorker) => source.emit('message', message);
  return { ...channel, source, sent, hear, hasToLeave: () => channel.leave.signal.aborted };
}

describe('a worker of a run', () => {
  beforeEach(() => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
  });

  it('gets its order and the token, which changes with each loan', async () => {
    const { command, hear, hasToLeave } = open();
    hear({ order, loan });
    const { token, ...given } = (await command)!;
    expect(given).toEqual({ order });
    hear({ loan: { header: 'Bearer b', waiting: '' } });
    expect(token.authorization()).toBe('Bearer b');
    hear({ halt: 'refused' });
    expect(token.waiting).toBe('refused');
    expect(hasToLeave()).toBe(false);
  });

  it.each<[string, (opened: ReturnType<typeof open>) => void]>([
    ['is asked to drain', ({ hear }) => hear('drain')],
    ['has lost its command', ({ source }) => source.emit('disconnect')],
  ])('leaves when it %s, also before it has an order', async (_, happens) => {
    const opened = open();
    happens(opened);
    expect(opened.hasToLeave()).toBe(true);
    expect(await opened.command).toBeNull();
  });

  it('leaves at once where its command has ended already', async () => {
    const { command, hasToLeave, say, sent } = open({ connected: false });
    expect(hasToLeave()).toBe(true);
    expect(await command).toBeNull();
    say({ inFlight: 1 });
    expect(sent).toEqual([]);
  });

  it('leaves when the command has said nothing for four seconds, but not while it speaks', () => {
    const { hear, hasToLeave } = open();
    for (let n = 0; n < 20; n++) {
      vi.advanceTimersByTime(3_500);
      hear({ loan });
    }
    expect(hasToLeave()).toBe(false);
    vi.advanceTimersByTime(4_000);
    expect(hasToLeave()).toBe(true);
  });

  it('stays with a command that was stopped and continued together with it', () => {
    const { hear, hasToLeave } = open();
    vi.setSystemTime(Date.now() + 3_600_000); // timers do not count up while a process is stopped
    vi.advanceTimersByTime(500);
    hear({ loan });
    vi.advanceTimersByTime(3_000);
    expect(hasToLeave()).toBe(false);
  });
});
