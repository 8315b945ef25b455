import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { checkRedis } from '../../src/redis/boot-check.ts';
import { makeLogin, refusals } from '../support/login.ts';
import { type Release, startRelease } from '../support/redis-release.ts';
import { useEverything } from '../support/use-everything.ts';

/** Images first; a package is of use where its version could not be had as an image. */
const releases: Release[] = [
  ...['6.2', '7.0', '7.2', '7.4', '8.0', '8.2', '8.4', '8.6', '8'].map((version) => ({
    image: `redis:${version}-alpine`,
  })),
  ...['7.2', '8.0', '8.1', '9.0', '9.1'].map((version) => ({ image: `valkey/valkey:${version}-alpine` })),
  { tools: 'redis-tools', release: 'bookworm' },
  { tools: 'redict-tools', release: 'bookworm-backports', over: 'bookworm' }, // Redis 7.2 under another name
  { tools: 'redis-tools', release: 'trixie' },
  { tools: 'redis-tools', release: 'experimental', over: 'sid' },
  { tools: 'valkey-tools', release: 'bookworm-backports', over: 'bookworm' },
  { tools: 'valkey-tools', release: 'trixie' },
  { tools: 'valkey-tools', release: 'sid' },
];

const folder = mkdtempSync(join(tmpdir(), 'expunge-releases-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const tried: string[] = [];
afterAll(() => console.log(`tried: ${tried.join(', ')}`));

test.for(releases.map((release) => [nameOf(release), release] as const))(
  'all that the command does, with the login of the README, on %s',
  async ([name, release], { onTestFinished, skip }) => {
    const server = await startRelease(onTestFinished, release, folder);
    if ('closed' in server) {
      console.log(`skipped: ${server.closed}`);
      return skip(server.closed);
    }
    const admin = server.connect();
    const { name: kind, version } = await checkRedis(admin);
    const minor = `${kind} ${version.split('.').slice(0, 2).join('.')}`;
    if (tried.includes(minor)) return skip(`${minor} has been tried`);
    tried.push(minor);
    const redis = await makeLogin([admin], mkdtempSync(join(folder, 'login-')), server.url);
    const { broken, run, seconds } = await useEverything({
      atEnd: onTestFinished,
      redis,
      ids: 3_000,
      kill: true,
    });
    console.log(
      `${name}: ${kind} ${version}, ${run.rows} ids in ${seconds.toFixed(0)} s: ${JSON.stringify(run.counts)}`,
    );
    expect(broken).toBeNull();
    expect(await refusals(admin)).toEqual([]);
  },
);

function nameOf(release: Release): string {
  return 'image' in release ? release.image : `${release.tools} of Debian ${release.release}`;
}
