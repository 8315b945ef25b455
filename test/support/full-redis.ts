import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { messageOf } from '../../src/errors.ts';
import type { Run } from '../../src/ledger/run.ts';
import { describeRejection } from '../../src/redis/errors.ts';
import { systemCode } from '../../src/system-errors.ts';
import { type OwnRedis, openOwnRedis } from './own-redis.ts';
import { until } from './processes.ts';

type AtEnd = (task: () => Promise<void>) => void;

/** A Redis that can be filled up, so that it takes no writes of this run, and emptied again. Both return once that is so. */
export type FullRedis = OwnRedis & { fill(run: Pick<Run, 'id' | 'fp'>): Promise<void>; free(): Promise<void> };

/**
 * Which of its stores is filled; or, where none is: `replicas` wants more of them, `role` becomes a replica, `rights` refuses the keys of the run
 * and takes all others.
 */
export type Store = 'disk' | 'memory' | 'replicas' | 'role' | 'rights';

const diskMegabytes = 32;

/** Where `canFill` says that it can be had. */
export async function openFullRedis(store: Store, atEnd: AtEnd): Promise<FullRedis> {
  if (store === 'disk') return onSmallDisk(atEnd);
  const own = await openOwnRedis(atEnd);
  return { ...own, ...switches[store](own.connect()) };
}

/** False where no disk of its own can be mounted, as anybody but root may not; says so on the console. */
export function canFill(store: Store): boolean {
  if (store !== 'disk') return true;
  const folder = mkdtempSync(join(tmpdir(), 'expunge-disk-'));
  try {
    mountAt(folder);
    execFileSync('umount', [folder], { stdio: 'ignore' });
    return true;
  } catch (error) {
    console.log(`skipped: no disk of its own can be mounted here (${messageOf(error)})`);
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Switch = Pick<FullRedis, 'fill' | 'free'>;

const switches: Record<Exclude<Store, 'disk'>, (admin: Redis) => Switch> = {
  memory: (admin) => bySetting(admin, 'maxmemory'),
  replicas: (admin) => bySetting(admin, 'min-replicas-to-write'),
  role: (admin) => ({
    fill: () => admin.replicaof('127.0.0.1', '1').then(() => untilIt(admin, true)),
    free: () => admin.replicaof('NO', 'ONE').then(() => untilIt(admin, false)),
  }),
  rights: (admin) => {
    const allow = async (...keys: string[]) => void (await admin.acl('SETUSER', 'default', 'resetkeys', ...keys));
    return {
      fill: ({ id, fp }) => allow(`%R~expunge:{${id}}*`, `~expunge:{${fp}}*`, '~expunge:runs', '~filler'),
      free: () => allow('~*'),
    };
  },
};

/** One that is 0 = not so, or 1. */
function bySetting(admin: Redis, name: string): Switch {
  const set = async (value: 0 | 1) => {
    await admin.config('SET', name, value);
    await untilIt(admin, value === 1);
  };
  return { fill: () => set(1), free: () => set(0) };
}

async function onSmallDisk(atEnd: AtEnd): Promise<FullRedis> {
  const disk = mkdtempSync(join(tmpdir(), 'expunge-disk-'));
  mountAt(disk);
  atEnd(async () => {
    execFileSync('umount', ['--lazy', disk], { stdio: 'ignore' });
    rmSync(disk, { recursive: true, force: true });
  });
  const stateDir = join(disk, 'state');
  mkdirSync(stateDir);
  const own = await openOwnRedis(atEnd, undefined, stateDir);
  const admin = own.connect();
  const ballast = join(disk, 'ballast');
  return {
    ...own,
    fill: async () => {
      fillWith(ballast);
      await untilIt(admin, true);
    },
    free: async () => {
      rmSync(ballast);
      await untilIt(admin, false);
    },
  };
}

function mountAt(folder: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskMegabytes}m`, 'tmpfs', folder], { stdio: 'ignore' });
}

/** Writes until the disk is full. What is left of its last page is filled by Redis itself. */
function fillWith(file: string): void {
  for (const size of [1 << 20, 1 << 12]) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(size), { flag: 'a' });
    } catch (error) {
      if (systemCode(error) !== 'ENOSPC') throw error;
    }
  }
}

/** Redis notices with its next write that its disk is full, and within a second that it isn't any more. */
async function untilIt(admin: Redis, refuses: boolean): Promise<void> {
  await until(refuses ? 'Redis rejects writes' : 'Redis accepts writes', async () => {
    const words = await admin.set('filler', 'x'.repeat(1_000)).then(() => '', describeRejection);
    return (words !== '') === refuses;
  });
}
