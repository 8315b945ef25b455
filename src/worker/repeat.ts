import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../logger.ts';
import { redisWords } from '../redis/errors.ts';
import type { Part } from './parts.ts';

/**
 * A part that does its task again and again, `everyMs` after the end of the last time. One that fails is tried again then; why is told
 * once, until it is something else or the task has gone well.
 */
export function repeat(name: string, everyMs: number, task: () => Promise<void>, log: Log): Part {
  const stopping = new AbortController();
  let told = '';
  const tell = (reason: string) => {
    if (reason !== told && reason !== '') log.warn({ part: name, reason }, 'a task failed, trying again');
    told = reason;
  };
  const loop = async () => {
    while (!stopping.signal.aborted) {
      tell(await task().then(() => '', redisWords));
      await sleep(everyMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  };
  // What is under way when it drains is not waited for: against a Redis that hangs it may never end.
  return { name, start: () => void loop(), drain: () => stopping.abort() };
}
