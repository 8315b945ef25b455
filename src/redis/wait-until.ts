import { setTimeout as sleep } from 'node:timers/promises';

/** Asks again and again until the condition holds: true then, false once the deadline has passed. */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  deadlineMs: number,
  everyMs = 20,
): Promise<boolean> {
  const end = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() >= end) return false;
    await sleep(everyMs);
  }
  return true;
}
