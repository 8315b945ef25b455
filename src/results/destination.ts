import { accessSync, constants, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { refusePlainHttp } from '../config/check-target.ts';
import { readHeaders } from '../config/header-lines.ts';
import type { Config } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import type { Run } from '../ledger/run.ts';
import type { RedisClient } from '../redis/client.ts';
import type { Lease } from '../redis/lease.ts';
import { explainFileError, isFileError, systemCode } from '../system-errors.ts';
import { putSet, shownAddress } from './put-set.ts';
import { moveSet, removeSet, writeSet } from './result-set.ts';

/** The parts of a run's lease that a delivery needs. */
type DeliveryLease = Pick<Lease, 'signal' | 'isHeld'>;

/** A place to which the results of runs are delivered. */
export type Destination = {
  /** A label for people, without secrets. */
  label: string;
  /**
   * Delivers the results of a run that has ended, and returns where they are. Repeating it replaces them. Throws any problem, including a lost lease:
   * then nothing is replaced that another process may have delivered.
   */
  deliver(redis: RedisClient, run: Run, lease: DeliveryLease): Promise<string>;
};

type Settings = Pick<Config, 'results' | 'resultsHeaderFile' | 'stateDir' | 'proxy' | 'allowHttp'>;

/** Opens the destination that `--results` names; null without it. Throws USAGE or CREDENTIALS for settings that cannot be used. */
export function openDestination(settings: Settings, env: NodeJS.ProcessEnv): Destination | null {
  if (settings.results === undefined) return null;
  return /^https?:\/\//i.test(settings.results)
    ? openReceiver(settings.results, settings, env)
    : openFolder(makeFolder(settings.results));
}

/** Makes the folder and returns its path. Throws USAGE if no results could be written: a file of that name, no permission. */
function makeFolder(path: string): string {
  const folder = resolve(path);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    accessSync(folder, constants.W_OK | constants.X_OK);
    return folder;
  } catch (error) {
    if (!isFileError(error)) throw error;
    const isFile = ['EEXIST', 'ENOTDIR'].includes(systemCode(error));
    const why = isFile ? 'it is a file, or below one' : explainFileError(error).words;
    const next = 'name a folder that this process may write to';
    throw new ExpungeError('USAGE', `--results: expected a folder, got ${path}: ${why}`, { cause: error, next });
  }
}

function openFolder(folder: string): Destination {
  return {
    label: folder,
    deliver: async (redis, run, lease) => {
      const set = await writeSet(redis, run, folder, lease.signal);
      try {
        if (!lease.isHeld()) throw new Error('stopped');
        return await moveSet(set);
      } finally {
        await removeSet(set);
      }
    },
  };
}

/** Delivers by PUT. The files are first written to the state folder, because most stores want to know their size in advance. */
function openReceiver(
  url: string,
  { stateDir, proxy, allowHttp, ...settings }: Settings,
  env: NodeJS.ProcessEnv,
): Destination {
  refusePlainHttp('--results', url, allowHttp, 'read the results');
  const headers = readHeaders(
    { named: 'EXPUNGE_RESULTS_HEADER_FILE', path: settings.resultsHeaderFile, variable: 'EXPUNGE_RESULTS_HEADERS' },
    env,
  );
  const receiver = { url, headers, route: { ca: null, proxy: proxy ?? null } };
  return {
    label: shownAddress(url),
    deliver: async (redis, run, lease) => {
      const set = await writeSet(redis, run, join(stateDir, 'results'), lease.signal);
      try {
        return await putSet(receiver, set, lease, run.resultsAt > 0); // `resultsOf` is also '' if a set is to be replaced
      } finally {
        await removeSet(set);
      }
    },
  };
}
