import { createReadStream } from 'node:fs';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pRetry from 'p-retry';
import { messageOf } from '../errors.ts';
import { type Route, sendOnce, statusProblem } from '../http/send-once.ts';
import type { Lease } from '../redis/lease.ts';
import type { ResultSet } from './result-set.ts';

/** A server that takes files by PUT. `headers` are read for each file, so that a secret can be replaced. */
type Receiver = { url: string; route: Route; headers: () => Promise<Record<string, string>> };

const triesOfFile = 3;
const againAfterMs = 1_000; // then twice as long
const idleMs = 60_000;

const types: Readonly<Record<string, string>> = { csv: 'text/csv; charset=utf-8', json: 'application/json' };

/**
 * Sends the files of a set to `{url}/{run}/{name}`, the summary last, each with the query of the URL. A file is read while it is sent. `isReplacing`:
 * an earlier set is there. Its summary, which vouches for its files, is replaced first. Repeating it replaces the files. Throws an Error that says
 * which file was refused and why, without query or headers.
 */
export async function putSet(
  receiver: Receiver,
  set: ResultSet,
  { signal, isHeld }: Pick<Lease, 'signal' | 'isHeld'>,
  isReplacing: boolean,
): Promise<string> {
  const put = async (file: string, name: string) => {
    if (!isHeld()) throw new Error('stopped');
    await putFile(receiver, join(set.folder, file), addressOf(receiver.url, set.run, name), signal);
  };
  if (isReplacing) await put(await writeMarker(set), set.names.at(-1)!);
  for (const name of set.names) await put(name, name);
  return shownAddress(addressOf(receiver.url, set.run, ''));
}

/** Writes the file that replaces the summary while the files of a set replace others, and returns its name. */
async function writeMarker({ run, folder }: ResultSet): Promise<string> {
  const name = 'replacing.json';
  await writeFile(join(folder, name), `${JSON.stringify({ v: 1, type: 'replacing', run })}\n`, { mode: 0o600 });
  return name;
}

async function putFile(receiver: Receiver, path: string, url: string, signal: AbortSignal): Promise<void> {
  const own = {
    'content-type': types[path.split('.').at(-1)!] ?? 'application/octet-stream',
    'content-length': `${(await stat(path)).size}`,
  };
  const headers = { ...(await receiver.headers()), ...own };
  const put = async () => {
    const body = partsOf(path);
    const problem = await sendOnce(receiver.route, { method: 'PUT', url, headers, body, idleMs, signal }).then(
      statusProblem,
      messageOf,
    );
    if (problem !== '') throw new Error(`PUT ${shownAddress(url)}: ${problem}`);
  };
  await pRetry(put, { retries: triesOfFile - 1, minTimeout: againAfterMs, signal });
}

/** The parts of a file, which is opened once the server takes it. */
async function* partsOf(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path) as AsyncIterable<Uint8Array>;
}

/** The URL of a run's file. The path of the URL is kept, and so is its query: some stores carry their permission in the query. */
function addressOf(url: string, run: string, name: string): string {
  const { origin, pathname, search } = new URL(url);
  return `${origin}${pathname.replace(/\/+$/, '')}/${run}/${name}${search}`;
}

/** A URL without its query, which may be secret. */
export function shownAddress(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
