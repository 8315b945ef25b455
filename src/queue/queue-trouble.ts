import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'bullmq';
import type { Log } from '../logger.ts';
import { redisWords } from '../redis/errors.ts';

const sameAgainMs = 60_000;
const textsAtMost = 20;

/** Tells of trouble, the same text once a minute: while something is wrong with Redis there may be thousands of errors a second. */
export function troubleTeller(log: Log, message: string, clock: () => number): (error: unknown) => void {
  const toldAt = new Map<string, number>();
  return (error) => {
    const reason = redisWords(error);
    const now = clock();
    if (now - (toldAt.get(reason) ?? Number.NEGATIVE_INFINITY) < sameAgainMs) return;
    if (toldAt.size >= textsAtMost) toldAt.clear();
    toldAt.set(reason, now);
    log.warn({ reason }, message);
  };
}

const brakeMs = 500;

/**
 * Lets the loop of a BullMQ worker rest for half a second after an error. By itself it rests only where the connection is lost, and asks
 * a Redis that refuses writes thousands of times a second.
 */
export function brake(worker: Pick<Worker, 'on' | 'pause' | 'resume' | 'closing'>): void {
  let isResting = false;
  worker.on('error', async () => {
    if (isResting) return;
    isResting = true;
    await worker.pause(true).catch(() => {});
    await sleep(brakeMs);
    isResting = false;
    if (!worker.closing) await worker.resume(); // tells of errors by itself
  });
}
