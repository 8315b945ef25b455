import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RedisOptions } from 'ioredis';
import { type BenchTarget, benchToken } from './target.ts';

/** One way to delete the ids of a list. */
export type Peer = { name: string; command: string; args: string[]; env?: NodeJS.ProcessEnv };

/** What all peers get: the CSV, the folder for files of their own, and the Redis. */
export type Given = { csv: string; folder: string; stateDir: string; redis: RedisOptions };

export const bare = 'bare loop';

/** The peers in the order in which they take turns: the bare loop is what the others are compared with. */
export function peersOf(given: Given, target: BenchTarget): Peer[] {
  return [
    script(bare, 'bare-dispatch.ts', given.csv, target.url),
    curl(given, target),
    expunge(given, target),
    script('one BullMQ job per id', 'one-job-per-id.ts', given.csv, target.url, JSON.stringify(given.redis)),
  ];
}

function expunge({ csv, stateDir }: Given, target: BenchTarget): Peer {
  const bin = join(import.meta.dirname, '../../src/bin.js');
  const flags = ['--resource', 'annotations', '--base-url', target.url, '--yes', '--json', '--state-dir', stateDir];
  const ca = target.ca === '' ? [] : ['--ca-file', target.ca];
  const args = [bin, 'run', csv, ...flags, ...ca];
  return { name: 'expunge run', command: process.execPath, args, env: { EXPUNGE_TOKEN: benchToken } };
}

function curl({ csv, folder }: Given, target: BenchTarget): Peer {
  const config = join(folder, 'curl.conf');
  const ids = readFileSync(csv, 'utf8').trimEnd().split('\n').slice(1);
  const part = (id: string) => `url = "${target.url}/v2/annotations/${id}"\noutput = "/dev/null"\n`;
  writeFileSync(config, `oauth2-bearer = "${benchToken}"\n`);
  // In pieces: ten million are more than a string can hold.
  for (let at = 0; at < ids.length; at += 100_000) {
    const parts = ids.slice(at, at + 100_000).map(part);
    appendFileSync(config, parts.join(''));
  }
  const flags = ['-sS', '--http1.1', '--parallel', '--parallel-max', '64', '-X', 'DELETE'];
  return {
    name: 'curl --parallel',
    command: 'curl',
    args: [...flags, '-K', config],
    env: { CURL_CA_BUNDLE: target.ca },
  };
}

function script(name: string, file: string, ...args: string[]): Peer {
  return { name, command: process.execPath, args: [join(import.meta.dirname, file), ...args] };
}
