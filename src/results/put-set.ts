import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Route, sendOnce, statusProblem } from '../http/send-once.ts';
import type { Lease } from '../redis/lease.ts';
import { sleepUntilAborted } from '../wait.ts';
import type { ResultSet } from './result-set.ts';

/** A server that takes files by PUT. `headers` are read for each file, so that a secret can be replaced. */
type Receiver = { url: string; route: Route; headers: () => Promise<Record<string, string>> };

const triesOfFile = 3;
const againAfterMs = 1_000;
const idleMs = 60_000;

const types: Readonly<Record<string, string>> = { csv: 'text/csv; charset=utf-8', json: 'application/json' };

/**
 * Sends the files of a set to `{url}/{run}/{name}`, the summary last; the query of the URL stays behind each. A file is read while it is
 * sent. Repeating it replaces what is there. Throws an Error that says which file was not taken and why, without query or headers.
 */
export async function putSet(
  receiver: Receiver,
  set: ResultSet,
  { signal, isHeld }: Pick<Lease, 'signal' | 'isHeld'>,
): Promise<string> {
  for (const name of set.names) {
    if (!isHeld()) throw new Error('stopped');
    await putFile(receiver, join(set.folder, name), addressOf(receiver.url, set.run, name), signal);
  }
  return shownAddress(addressOf(receiver.url, set.run, ''));
}

async function putFile(receiver: Receiver, path: string, url: string, signal: AbortSignal): Promise<void> {
  for (let tries = 1; ; tries++) {
    const problem = await putOnce(receiver, path, url, signal);
    if (problem === '') return;
    if (tries === triesOfFile || signal.aborted) throw new Error(`PUT ${shownAddress(url)}: ${problem}`);
    await sleepUntilAborted(againAfterMs * tries, signal);
  }
}

/** Why a file was not taken, or ''. */
async function putOnce({ route, headers }: Receiver, path: string, url: string, signal: AbortSignal): Promise<string> {
  const { size } = await stat(path);
  const own = {
    'content-type': types[path.split('.').at(-1)!] ?? 'application/octet-stream',
    'content-length': `${size}`,
  };
  const given = await headers();
  try {
    const request = { method: 'PUT', url, headers: { ...given, ...own }, body: partsOf(path), idleMs, signal } as const;
    return statusProblem(await sendOnce(route, request));
  } catch (error) {
    return (error as Error).message;
  }
}

/** The file is opened once the server takes it. */
async function* partsOf(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path) as AsyncIterable<Uint8Array>;
}

/** Where a file of a run belongs. The path of the URL is kept, and so is its query: some stores carry their permission in it. */
function addressOf(url: string, run: string, name: string): string {
  const { origin, pathname, search } = new URL(url);
  return `${origin}${pathname.replace(/\/+$/, '')}/${run}/${name}${search}`;
}

/** A URL without its query, which may be secret. */
export function shownAddress(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
