import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis, RedisOptions } from 'ioredis';
import type { PrivatePlace } from '../address.ts';
import { parseInfo } from '../boot-check.ts';
import { keys } from '../keys.ts';
import { oneShot } from '../probe.ts';

/*
 * How the private Redis is known to have lost nothing from one process to the next, although it only flushes each second.
 *
 * Whoever stops it, alone and under the start lock, writes a last word into it, `ended` of `expunge:lineage`, and leaves a note of the same
 * process beside its files once it has ended. Whoever starts it takes that note away first, for good. If the next process knows the last
 * word that the note names, it knows all that was before: what Redis loses is always the end. The note counts once, so a process that
 * was started in between, and whose end was lost with the last word still there, is never passed over. A crash anywhere leaves no note, or
 * one without its word: then the runs go on in doubt.
 */

const maxAncestors = 50;

/** Writes the clean-shutdown marker as the last write, and returns the process it names. Nobody else may be connected. */
export async function writeShutdownMarker(redis: Redis): Promise<string> {
  const process = await processOf(redis);
  await redis.hset(keys.lineage, 'ended', process);
  return process;
}

/** Writes the marker file, once the process has ended. */
export function writeMarkerFile(place: PrivatePlace, process: string): void {
  writeFileSync(markerFile(place), process, { mode: 0o600 });
}

/** Removes the marker file for good, and returns its content; '' where there is none. Call it before any start. */
export function takeMarkerFile(place: PrivatePlace): string {
  const file = markerFile(place);
  if (!existsSync(file)) return '';
  const process = readFileSync(file, 'utf8');
  writeFileSync(file, '', { flush: true }); // a file that is only removed may be there again after a loss of power
  rmSync(file);
  return process;
}

/** Tells a process that has just been started which ones it follows, if it has all that the last one knew. */
export async function inheritAncestors(options: RedisOptions, ended: string): Promise<void> {
  const redis = oneShot(options, 'start');
  try {
    await redis.connect();
    const [marker, of, ancestors] = await redis.hmget(keys.lineage, 'ended', 'of', 'ancestors');
    if (marker !== ended) return;
    const before = of === ended && ancestors ? ancestors.split(' ') : [];
    const followed = [ended, ...before].slice(0, maxAncestors).join(' ');
    await redis.hset(keys.lineage, 'of', await processOf(redis), 'ancestors', followed);
  } catch {
    // It goes on without ancestors: in doubt.
  } finally {
    redis.disconnect();
  }
}

async function processOf(redis: Redis): Promise<string> {
  return parseInfo(await redis.info('server')).run_id ?? '';
}

function markerFile({ folder }: PrivatePlace): string {
  return join(folder, 'ended');
}
