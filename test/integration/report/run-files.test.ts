import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ReportFile } from '../../../src/report/report.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { invoke } from '../../support/command.ts';
import { testRedisUrl } from '../../support/redis.ts';
import { forgetTarget } from '../../support/redis-keys.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'expunge-test-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a run holds no spool while it deletes, and its report names the day until which it is kept', async () => {
  const stateDir = join(folder, 'state');
  const spools: string[][] = [];
  const look = () => {
    spools.push(readdirSync(join(stateDir, 'spool')));
    return null;
  };
  const sandbox = await startSandbox({ objects: { views: 3 }, faults: { script: look } });
  try {
    const list = join(folder, 'ids.txt');
    writeFileSync(list, 'v-000001\n');
    const env = { REDIS_URL: testRedisUrl(), EXPUNGE_TOKEN: sandbox.token, EXPUNGE_STATE_DIR: stateDir };
    const flags = ['--resource', 'views', '--base-url', sandbox.url, '--keep', '2d', '--yes'];
    const [before, twoDays] = [Date.now(), 2 * 86_400_000];
    expect(await invoke(['run', list, ...flags], env).ended).toBe(0);
    const after = Date.now();
    expect(spools).toEqual([[]]);
    const [run = ''] = readdirSync(join(stateDir, 'runs'));
    const until = Date.parse(readFileSync(join(stateDir, 'runs', run, 'kept-until'), 'utf8').trim());
    expect(until).toBeGreaterThanOrEqual(Math.floor(before / 1_000) * 1_000 + twoDays);
    expect(until).toBeLessThanOrEqual(Math.ceil(after / 1_000) * 1_000 + twoDays);
    const status = invoke(['status', run], env);
    await status.ended;
    expect(status.printed()).toContain(
      `its report is kept until ${new Date(until).toISOString().slice(0, 10)} in ${join(stateDir, 'runs', run)}`,
    );
  } finally {
    await forgetTarget(sandbox.url);
    await sandbox.close();
  }
});

test('a report takes away what a killed command had begun to write of it, and nothing else', async () => {
  mkdirSync(join(folder, 'runs'));
  const path = join(folder, 'runs', 'report.csv');
  const draft = (name: string, pid: number, host = hostname()) => `.${name}.${host}-${pid}-0123456789ab.part`;
  const gone = spawnSync('true').pid;
  const others = [draft('report.csv', process.ppid), draft('other.csv', gone), draft('report.csv', gone, 'elsewhere')];
  for (const name of [...others, draft('report.csv', gone), '.report.csv.part', 'report.csv.part'])
    writeFileSync(join(folder, 'runs', name), 'text');
  const file = await ReportFile.open(path, 'run');
  await file.write('text');
  await file.commit();
  expect(existsSync(path)).toBe(true);
  expect(readdirSync(join(folder, 'runs')).sort()).toEqual(
    [...others, '.report.csv.part', 'report.csv', 'report.csv.part'].sort(),
  );
});
