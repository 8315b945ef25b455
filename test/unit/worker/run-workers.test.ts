import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { fixedToken } from '../../../src/token/fixed-token.ts';
import { RunWorkers, type WorkerOrder } from '../../../src/worker/run-workers.ts';

const loan = { header: 'Bearer t', waiting: '' };

class Child extends EventEmitter {
  connected = true;
  isFrozen = false;
  readonly sent: unknown[] = [];
  readonly stderr = new PassThrough();

  send(message: unknown, sent: () => void): void {
    this.sent.push(message);
    if (!this.isFrozen) sent();
  }

  exit(code: number): void {
    this.connected = false;
    this.emit('exit', code, null);
    this.emit('close', code, null);
  }
}

async function open(size = 2) {
  const children: Child[] = [];
  const told: string[] = [];
  const workers = new RunWorkers({
    size,
    fork: () => {
      children.push(new Child());
      return children.at(-1) as unknown as ChildProcess;
    },
    orderFor: (worker) => ({ worker }) as WorkerOrder,
    token: fixedToken('t', 'EXPUNGE_TOKEN'),
    tell: (line) => told.push(line),
    say: () => {},
    log: { debug() {}, info() {}, warn() {}, error() {} },
    random: () => 0,
  });
  await workers.part.start!();
  onTestFinished(async () => {
    workers.leave();
    for (const child of children) if (child.connected) child.exit(0);
    await workers.part.drain!();
    vi.useRealTimers();
  });
  return { workers, children, told };
}

describe('the workers of a run', () => {
  beforeEach(() => void vi.useFakeTimers());

  test('get their order and the token, and the token five times a second', async () => {
    const { children } = await open();
    expect(children.map(({ sent }) => sent)).toEqual([
      [{ order: { worker: 1 }, loan }],
      [{ order: { worker: 2 }, loan }],
    ]);
    vi.advanceTimersByTime(1_000);
    expect(children[0]!.sent.slice(1)).toEqual(Array(5).fill({ loan }));
  });

  test('are sent no more while they do not listen', async () => {
    const { children } = await open(1);
    children[0]!.isFrozen = true;
    vi.advanceTimersByTime(60_000);
    expect(children[0]!.sent).toHaveLength(2);
  });

  test('have as many requests in flight as they say together, and none once they have ended', async () => {
    const { workers, children } = await open();
    expect(workers.inFlight).toBe(0);
    children[0]!.emit('message', { inFlight: 7 });
    children[1]!.emit('message', { inFlight: 5 });
    expect(workers.inFlight).toBe(12);
    children[0]!.exit(1);
    expect(workers.inFlight).toBe(5);
    children[0]!.emit('message', { inFlight: 3 }); // sent before its end
    expect(workers.inFlight).toBe(5);
  });

  test('halt the run where the API refuses the token, and tell their warnings and their last words', async () => {
    const { children, told } = await open(1);
    const [child] = children;
    for (let ms = 0; ms <= 8_000; ms += 1_000) {
      child!.emit('message', { refused: 'Bearer t', said: '' });
      vi.advanceTimersByTime(1_000);
    }
    expect(child!.sent).toContainEqual({ halt: 'the API refused the token from EXPUNGE_TOKEN (401)' });
    child!.emit('message', { tell: 'Redis did not answer' });
    child!.stderr.emit('data', 'internal error: x is no function\n  report it\n');
    child!.exit(1);
    expect(told).toEqual(['Redis did not answer', 'worker 1: internal error: x is no function']);
  });

  test('are asked to drain at once, and waited for', async () => {
    const { workers, children } = await open();
    let isDrained = false;
    workers.leave();
    workers.leave();
    for (const { sent } of children) expect(sent.filter((message) => message === 'drain')).toHaveLength(1);
    const drained = Promise.resolve(workers.part.drain!()).then(() => {
      isDrained = true;
    });
    children[0]!.exit(0);
    await vi.advanceTimersByTimeAsync(100);
    expect(isDrained).toBe(false);
    children[1]!.exit(0);
    await drained;
    expect(children).toHaveLength(2);
  });

  test('are none for a run of one process', async () => {
    const { workers, children } = await open(0);
    vi.advanceTimersByTime(1_000);
    expect([children, workers.inFlight]).toEqual([[], 0]);
  });
});
