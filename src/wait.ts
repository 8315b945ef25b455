import { setTimeout as sleep } from 'node:timers/promises';

/** Sleeps for `ms`, or until `signal` is aborted. Never rejects. */
export function sleepUntilAborted(ms: number, signal: AbortSignal): Promise<unknown> {
  return sleep(ms, undefined, { signal }).catch(() => {});
}

/** Checks a condition every `everyMs`. Returns true once it holds, false after `deadlineMs`. Throws what the condition throws. */
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

/** Returns the result of `work`; null if it fails, or does not end within `ms`. Never rejects, and does not stop the work. */
export async function withTimeout<T>(ms: number, work: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null);
  });
  try {
    return await Promise.race([work.catch(() => null), late]);
  } finally {
    clearTimeout(timer);
  }
}
