import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Redis, RedisOptions } from 'ioredis';
import type { PrivatePlace } from '../address.ts';
import { parseInfo } from '../boot-check.ts';
import { keys } from '../keys.ts';
import { oneShot } from '../probe.ts';

/*
 * How the private Redis shows that it lost nothing between two processes, although it flushes its file only each second.
 *
 * A process that stops it, alone and under the start lock, writes the clean-shutdown marker into it (`ended` of `expunge:lineage`: the id of the
 * Redis process). After the end it writes the marker file with the same id next to the data. The next start removes that file first. If the new
 * process has the marker that the file names, it has everything that was written before, because Redis loses the newest writes first. The file is
 * used once, so a process that was started in between and lost its end is never skipped. After a crash the file or the marker is missing, and the
 * runs are in doubt.
 *
 * A copy of the folder would have both, and lack the later writes. So the marker file also names each file of the data by properties that no copy
 * keeps: its inode, and when the system last changed it (ctime). Moving the folder within its file system changes neither.
 */

const maxAncestors = 50;

/** Writes the clean-shutdown marker as the last write, and returns the process it names. No other client must be connected. Throws if Redis fails. */
export async function writeShutdownMarker(redis: Redis): Promise<string> {
  const process = await processOf(redis);
  await redis.hset(keys.lineage, 'ended', process);
  return process;
}

/** Writes the marker file; call it after the end of the process, when its files no longer change. */
export function writeMarkerFile(place: PrivatePlace, process: string): void {
  writeFileSync(markerFile(place), `${process}\n${filesOf(place)}`, { mode: 0o600 });
}

/**
 * Removes the marker file, and returns the process it names; '' if there is none, or if the data files are not the ones it was written for. Call it
 * before each start.
 */
export function takeMarkerFile(place: PrivatePlace): string {
  const file = markerFile(place);
  if (!existsSync(file)) return '';
  const [process = '', ...files] = readFileSync(file, 'utf8').split('\n');
  const areSame = files.join('\n') === filesOf(place);
  writeFileSync(file, '', { flush: true }); // a removed file may exist again after a power failure
  rmSync(file);
  return areSame ? process : '';
}

/**
 * The files of the data, each with its inode and ctime. A container has its data in a volume, so the files in the folder that name the volume count.
 */
function filesOf({ folder, containerFile, folderIdFile }: PrivatePlace): string {
  const data = join(folder, 'appendonlydir');
  const names = existsSync(data) ? readdirSync(data).sort() : [];
  const paths = [...names.map((name) => join(data, name)), join(folder, 'appendonly.aof'), containerFile, folderIdFile];
  return paths
    .filter((path) => existsSync(path))
    .map(identify)
    .join('\n');
}

function identify(path: string): string {
  const { ino, ctimeNs } = statSync(path, { bigint: true });
  return `${basename(path)} ${ino} ${ctimeNs}`;
}

/** Records the ancestors of a newly started process, if it has the marker of the last one. Never throws: without ancestors runs are in doubt. */
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
    // Without ancestors the runs are in doubt.
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
