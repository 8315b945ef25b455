import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { exitCodes } from '../../../src/errors.ts';
import { restartAfterMs, superviseWorkers } from '../../../src/worker/supervisor.ts';
import { fakeSleep } from '../../support/fake-sleep.ts';

test.each([
  [1, 500, 1_000],
  [2, 1_000, 2_000],
  [5, 8_000, 16_000],
  [6, 15_000, 30_000],
  [1_000, 15_000, 30_000],
])('start number %i after an end comes after %i to %i ms', (failures, least, most) => {
  expect(restartAfterMs(failures, 0)).toBe(least);
  expect(restartAfterMs(failures, 1)).toBe(most);
});

describe('the workers of a supervisor', () => {
  type Child = EventEmitter & { worker: number; sent: string[] };

  /** `refuse`: the first starts, so many, throw. */
  function supervise(size: number, refuse = 0) {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const children: Child[] = [];
    const logged: string[] = [];
    const note = ({ reason }: { reason?: string }, message: string) => logged.push(`${message}: ${reason}`);
    const stopping = new AbortController();
    let refused = 0;
    const start = (worker: number) => {
      if (refused++ < refuse) throw new Error('spawn ENOMEM');
      const sent: string[] = [];
      const send = (message: string) => sent.push(message);
      const child = Object.assign(new EventEmitter(), { worker, sent, send, kill: () => {} });
      children.push(child);
      return child as unknown as ChildProcess;
    };
    const log = { debug() {}, info() {}, warn: note, error: note };
    const options = { size, start, stop: stopping.signal, log, random: () => 0 };
    const ended = superviseWorkers(options, fakeSleep);
    const exit = async (child: Child, ...how: [code: number | null, signal: string | null]) => {
      child.emit('exit', ...how);
      await vi.advanceTimersByTimeAsync(4_000);
    };
    return { children, logged, ended, exit, stopping };
  }

  test('are restarted however often they die, and the others are left alone', async () => {
    const { children, logged, ended, exit, stopping } = supervise(2);
    for (let n = 0; n < 8; n++) {
      await exit(children.findLast(({ worker }) => worker === 2)!, null, 'SIGKILL');
      await vi.advanceTimersByTimeAsync(30_000);
    }
    expect(children.map(({ worker }) => worker)).toEqual([1, ...Array(9).fill(2)]);
    expect(logged).toEqual(Array(8).fill('a worker exited unexpectedly, restarting it: worker 2, ended by SIGKILL'));
    expect(children[0]!.sent).toEqual([]);
    stopping.abort();
    await exit(children[0]!, 0, null);
    await exit(children.at(-1)!, 0, null);
    expect(await ended).toBe(0);
  });

  test('are restarted as often again after a minute of work', async () => {
    const { children, logged, exit } = supervise(1);
    for (let n = 0; n < 8; n++) {
      await vi.advanceTimersByTimeAsync(60_000);
      await exit(children.at(-1)!, 1, null);
    }
    expect(children).toHaveLength(9);
    expect(new Set(logged)).toEqual(new Set(['a worker exited unexpectedly, restarting it: worker 1, exit code 1']));
  });

  test.each([2, 5, 6])('are not restarted after exit code %i, and the others drain', async (code) => {
    const { children, logged, ended, exit } = supervise(2);
    await exit(children[0]!, code, null);
    expect(logged).toEqual(['a worker cannot run, stopping all workers: undefined']);
    expect(children.map(({ sent }) => sent)).toEqual([[], ['drain']]);
    await exit(children[1]!, 0, null);
    expect(children).toHaveLength(2);
    expect(await ended).toBe(code);
  });

  test('are asked to drain at once, and waited for', async () => {
    const { children, ended, exit, stopping } = supervise(2);
    let isOver = false;
    void ended.then(() => {
      isOver = true;
    });
    stopping.abort();
    expect(children.map(({ sent }) => sent)).toEqual([['drain'], ['drain']]);
    children[0]!.emit('exit', 0, null);
    await vi.advanceTimersByTimeAsync(100);
    expect(isOver).toBe(false);
    await exit(children[1]!, 0, null);
    expect(await ended).toBe(0);
    expect(children).toHaveLength(2);
  });

  test('for which the system has no process are tried again, and the others work meanwhile', async () => {
    const { children, logged, ended, exit, stopping } = supervise(2, 1);
    expect(children.map(({ worker }) => worker)).toEqual([2]);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(children.map(({ worker }) => worker)).toEqual([2, 1]);
    expect(logged).toEqual([
      'a worker could not be started: spawn ENOMEM',
      'a worker exited unexpectedly, restarting it: worker 1, not started',
    ]);
    stopping.abort();
    for (const child of children) await exit(child, 0, null);
    expect(await ended).toBe(0);
  });

  test('for which there never is a process are tried again until they have to drain', async () => {
    const { children, logged, ended, stopping } = supervise(2, Number.POSITIVE_INFINITY);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(children).toEqual([]);
    expect(logged.filter((line) => line.startsWith('a worker could not be started')).length).toBeGreaterThan(40);
    stopping.abort();
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await ended).toBe(exitCodes.OK.exit);
  });

  test('that cannot be started are tried again, too', async () => {
    const { children, logged } = supervise(1);
    children[0]!.emit('error', new Error('spawn ENOMEM'));
    await vi.advanceTimersByTimeAsync(4_000);
    expect(logged).toEqual(['a worker exited unexpectedly, restarting it: worker 1, not started']);
    expect(children).toHaveLength(2);
  });
});
