import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { globSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { ExpungeError } from '../../src/errors.ts';
import { openPrivateRedis, startMethods } from '../../src/redis/private/open.ts';
import { privatePlace } from '../../src/redis/private/place.ts';
import { findServer } from '../../src/redis/private/server-process.ts';
import { unpackServer } from '../../src/redis/private/unpack.ts';
import { makeStateDir, removeStateDir, urlOf } from './redis.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * What the tests of a run share: the build, where tests start processes, and one Redis. That is TEST_REDIS_URL where it is set, else a private
 * one, removed at the end. Where no Redis can be had the tests fail with the ways out.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const names = project.vitest.projects.map(({ name }) => name);
  if (names.every((name) => name === 'unit')) return async () => {};
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true'; // tests stop their containers; its own one would be one more image to fetch
  buildIfStale();
  project.provide('testRun', randomUUID());
  const given = process.env.TEST_REDIS_URL;
  if (given) {
    project.provide('redisUrl', given);
    return async () => {};
  }
  const stateDir = makeStateDir();
  project.provide('redisUrl', await startRedis(stateDir));
  return () => removeStateDir(stateDir);
}

/** Processes run what is shipped, and start in a third of the time that they need from the sources. */
function buildIfStale(): void {
  const changedMs = globSync(['src/**/*', 'package.json', 'tsconfig*.json'], { cwd: root }).map(
    (path) => statSync(`${root}${path}`).mtimeMs,
  );
  const builtMs = statSync(`${root}dist/bin.js`, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (builtMs <= Math.max(...changedMs)) execFileSync('npm', ['run', 'build'], { cwd: root, stdio: 'inherit' });
}

/** As the command does, but a container comes last: its port costs tests a tenth of their time. */
async function startRedis(stateDir: string): Promise<string> {
  try {
    const methods = startMethods.toSorted((a, b) => b.store.localeCompare(a.store)); // folder, folder, container
    const address = await openPrivateRedis(stateDir, process.env, () => {}, methods);
    address.stay?.presence.disconnect();
    if (address.options.path) await leadPathToServer(stateDir);
    return urlOf(address);
  } catch (error) {
    await removeStateDir(stateDir);
    if (!(error instanceof ExpungeError)) throw error;
    throw new Error(`the tests need Redis: ${error.message}\n→ ${error.next} (tests read TEST_REDIS_URL instead)`);
  }
}

/** Commands of the tests start the same server: where an engine answers they would start a container each time, which takes seconds. */
async function leadPathToServer(stateDir: string): Promise<void> {
  if (!('closed' in (await findServer('redis-server', process.env)))) return;
  const program = await unpackServer({ place: privatePlace(stateDir), env: process.env, say: () => {} });
  if ('closed' in program) return;
  const folder = join(stateDir, 'bin');
  mkdirSync(folder);
  const script = `#!/bin/sh\nLD_LIBRARY_PATH='${program.env.LD_LIBRARY_PATH}' exec '${program.path}' "$@"\n`;
  writeFileSync(join(folder, 'redis-server'), script, { mode: 0o755 });
  process.env.PATH = `${folder}:${process.env.PATH}`;
}
