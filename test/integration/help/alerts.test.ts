import { execFile, execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { readAlertRules } from '../../../src/help/topics.ts';

// The rules are played by promtool of the Debian package "prometheus": two targets side by side, one of which is in trouble.

const hasPromtool = (() => {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

type Series = Record<string, string>;

const places = { a: 'https://a.example.com', b: 'https://b.example.com' } as const;
const minutes = 100;

/** What two workers of a target that deletes say. */
function healthy(target: keyof typeof places): Series {
  const of = (worker: number) => `job="expunge",instance="${target}${worker}"`;
  const steady = `x${minutes}`;
  const each = [1, 2].map(
    (worker): Series => ({
      [`expunge_target_info{${of(worker)},base_url="${places[target]}",account=""}`]: `1${steady}`,
      [`expunge_redis_up{${of(worker)}}`]: `1${steady}`,
      [`expunge_redis_accepts_writes{${of(worker)}}`]: `1${steady}`,
      [`expunge_redis_losses{${of(worker)}}`]: `0${steady}`,
      [`expunge_runs{${of(worker)},state="running"}`]: `1${steady}`,
      [`expunge_runs{${of(worker)},state="halted"}`]: `0${steady}`,
      [`expunge_runs_held{${of(worker)},reason="window"}`]: `0${steady}`,
      [`expunge_runs_held{${of(worker)},reason="stop"}`]: `0${steady}`,
      [`expunge_items_total{${of(worker)},outcome="deleted"}`]: `0+600${steady}`,
      [`expunge_items_total{${of(worker)},outcome="failed"}`]: `0+1${steady}`,
      [`expunge_token_refreshes_total{${of(worker)},result="failed"}`]: `0${steady}`,
      [`expunge_results_undelivered{${of(worker)}}`]: `0${steady}`,
      [`expunge_schedule_late_seconds{${of(worker)},schedule="nightly"}`]: `0${steady}`,
      [`expunge_schedule_state{${of(worker)},schedule="nightly",state="paused_by_guard"}`]: `0${steady}`,
      [`expunge_schedule_last_result{${of(worker)},schedule="nightly",result="failed"}`]: `0${steady}`,
    }),
  );
  return Object.assign({}, ...each);
}

/** The series of target a with others in their place, on both its workers; null = they are gone. */
function inTrouble(changes: Series | null): Series {
  if (changes === null)
    return Object.fromEntries(Object.entries(healthy('a')).map(([name, values]) => [name, gone(values)]));
  const shaped = Object.entries(changes).flatMap(([name, values]) =>
    [1, 2].map((worker): [string, string] => [
      name.includes('{')
        ? name.replace('{', `{job="expunge",instance="a${worker}",`)
        : `${name}{job="expunge",instance="a${worker}"}`,
      `${values}x${minutes}`,
    ]),
  );
  return { ...healthy('a'), ...Object.fromEntries(shaped) };
}

/** As before for half an hour, then gone. */
function gone(values: string): string {
  return `${values.replace(/x\d+$/, 'x30')} stale`;
}

const stands = { 'expunge_items_total{outcome="deleted"}': '9+0', 'expunge_items_total{outcome="failed"}': '1+0' };
const held = (reason: string) => ({
  ...stands,
  [`expunge_hold{reason="${reason}"}`]: '1+0',
  [`expunge_runs_held{reason="${reason}"}`]: '1+0',
});

const causes: [what: string, changes: Series | null, alerts: string[]][] = [
  ['nothing', {}, []],
  ['its workers are gone', null, ['ExpungeNoWorker']],
  ['its Redis is away', { expunge_redis_up: '0+0' }, ['ExpungeRedisAway']],
  ['its Redis rejects writes', { expunge_redis_accepts_writes: '0+0' }, ['ExpungeRedisRejectsWrites']],
  ['Redis has lost data', { expunge_redis_losses: '1+0' }, ['ExpungeDataLost']],
  ...['stop', 'stop_file', 'no_token', 'circuit', 'outage', 'retry_after'].map((reason): [string, Series, string[]] => [
    `${reason} holds it`,
    held(reason),
    ['ExpungeHeld'],
  ]),
  ['its limit is used up', held('limit'), ['ExpungeLimitUsedUp']],
  ['its run waits for its window', { ...stands, 'expunge_runs_held{reason="window"}': '1+0' }, []],
  [
    'its run is paused',
    { ...stands, 'expunge_runs{state="running"}': '0+0', 'expunge_runs_held{reason="paused"}': '1+0' },
    [],
  ],
  ['nothing moves', stands, ['ExpungeNothingMoves']],
  ['a run is halted', { 'expunge_runs{state="halted"}': '1+0' }, ['ExpungeRunHalted']],
  ['many ids fail', { 'expunge_items_total{outcome="failed"}': '0+60' }, ['ExpungeManyFail']],
  [
    'one id in 20 fails, of few',
    { 'expunge_items_total{outcome="deleted"}': '0+1', 'expunge_items_total{outcome="failed"}': '0+0.1' },
    [],
  ],
  [
    'its token is not refreshed',
    { 'expunge_token_refreshes_total{result="failed"}': '0+1' },
    ['ExpungeTokenRefreshFails'],
  ],
  [
    'a guard paused its schedule',
    { 'expunge_schedule_state{schedule="nightly",state="paused_by_guard"}': '1+0' },
    ['ExpungeSchedulePaused'],
  ],
  [
    'an occurrence failed',
    { 'expunge_schedule_last_result{schedule="nightly",result="failed"}': '1+0' },
    ['ExpungeOccurrenceFailed'],
  ],
  ['an occurrence is late', { 'expunge_schedule_late_seconds{schedule="nightly"}': '4000+0' }, ['ExpungeScheduleLate']],
  ['results are not delivered', { expunge_results_undelivered: '3+0' }, ['ExpungeResultsUndelivered']],
];

const names = [...readAlertRules().matchAll(/- alert: (\w+)/g)].map(([, name]) => name!);

/** A test file of promtool: which alerts fire, and for whom. */
function testFile(changes: Series | null, expected: readonly string[]): string {
  const input_series = Object.entries({ ...healthy('b'), ...inTrouble(changes) }).map(([series, values]) => ({
    series,
    values,
  }));
  const tests = names.map((alertname) => ({
    expr: `count by (alertname, base_url) (ALERTS{alertname="${alertname}",alertstate="firing"})`,
    alertname,
  }));
  return JSON.stringify({
    rule_files: ['rules.yml'],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series,
        promql_expr_test: tests.map(({ expr, alertname }) => ({
          expr,
          eval_time: '90m',
          exp_samples: expected.includes(alertname)
            ? [{ labels: `{alertname="${alertname}",base_url="${places.a}"}`, value: 1 }]
            : [],
        })),
      },
    ],
  });
}

describe.skipIf(!hasPromtool)('the alert rules, of two targets of which one is in trouble', () => {
  test.each(causes)('if %s, fire for that one, and no other does', async (_, changes, expected) => {
    const folder = await mkdtemp(join(tmpdir(), 'expunge-alerts-'));
    try {
      await writeFile(join(folder, 'rules.yml'), readAlertRules());
      await writeFile(join(folder, 'test.yml'), testFile(changes, expected));
      const run = promisify(execFile)('promtool', ['test', 'rules', 'test.yml'], { cwd: folder });
      const said = await run.catch(({ stdout, stderr }) => ({ stdout: `${stdout}${stderr}` }));
      expect(said.stdout).toContain('SUCCESS');
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('each has an alert that is played here', () => {
    expect(new Set(causes.flatMap(([, , alerts]) => alerts))).toEqual(new Set(names));
  });
});
