import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Run } from '../../../src/ledger/run.ts';
import { command, startCommand, summaryIn } from '../../support/command.ts';
import { until } from '../../support/processes.ts';
import { removeStateDir } from '../../support/redis.ts';

test('a dashboard in a folder without runs begins its Redis, says how to make the first run, and leaves it stopped', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-test-'));
  const stateDir = join(folder, 'state');
  onTestFinished(async () => {
    await removeStateDir(stateDir);
    rmSync(folder, { recursive: true });
  });
  const env = { EXPUNGE_STATE_DIR: stateDir };
  const server = startCommand(['dashboard', '--port', '0'], { env });
  const link = await until('it listens', () => /http:\/\/\S+\/login\?once=\S+/.exec(server.stdout)?.[0]);
  const cookie = (await fetch(link, { redirect: 'manual' })).headers.get('set-cookie')!.split(';')[0]!;
  const overview = await fetch(new URL('/api/v1/overview', link), { headers: { cookie } });
  expect(await overview.json()).toMatchObject({ runs: { active: [], ended: 0 }, targets: [] });
  expect(server.stderr).toContain('expunge run ids.csv --detach');
  expect(server.stderr).toContain('--state-dir');
  server.signal('SIGINT');
  expect(await server.ended).toMatchObject({ code: 0 });
  expect((await command(['redis', 'status', '--json'], { env })).stdout).toContain('"state":"stopped"');
});

test('a dashboard of a private Redis keeps it through each action, and leaves it stopped at the end', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-test-'));
  const stateDir = join(folder, 'state');
  onTestFinished(async () => {
    await removeStateDir(stateDir);
    rmSync(folder, { recursive: true });
  });
  const env = { EXPUNGE_STATE_DIR: stateDir, EXPUNGE_BASE_URL: 'http://127.0.0.1:1', EXPUNGE_TOKEN: 'x' };
  writeFileSync(join(folder, 'list.csv'), 'id\na\nb\n');
  const args = ['run', join(folder, 'list.csv'), '--resource', 'views', '--yes', '--detach', '--json'];
  const { run } = summaryIn(await command(args, { env }));
  const made = await command(['token', 'add', 'me', '--role', 'operate'], { env });
  const server = startCommand(['dashboard', '--port', '0'], { env });
  const url = await until('it listens', () => /http:\/\/[\d.]+:\d+/.exec(server.stdout)?.[0]);
  const headers = { authorization: `Bearer ${made.stdout.trim()}`, 'content-type': 'application/json' };
  for (const action of ['pause', 'resume', 'pause']) {
    const { revision: seen } = (await (await fetch(`${url}/api/v1/runs/${run}`, { headers })).json()) as Run;
    const body = JSON.stringify(action === 'resume' ? { seen } : {});
    const done = await fetch(`${url}/api/v1/runs/${run}/${action}`, { method: 'POST', headers, body });
    expect(done.status, await done.text()).toBe(200);
  }
  server.signal('SIGINT');
  expect(await server.ended).toMatchObject({ code: 0 });
  expect((await command(['redis', 'status', '--json'], { env })).stdout).toContain('"state":"stopped"');
});
