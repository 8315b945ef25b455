import { expect, onTestFinished, test } from 'vitest';
import { checkCommand, openSilentApi, password, secretFile } from '../support/check-command.ts';
import { command } from '../support/command.ts';
import { type Failover, runFailover } from '../support/failover.ts';
import { until } from '../support/processes.ts';
import { openSentinelSet } from '../support/sentinel.ts';
import { isFull, sized } from '../support/size.ts';
import { hasOpenssl, makeCertificates } from '../support/tls.ts';

const ways: readonly Failover[] = sized(['killed'], ['killed', 'frozen and woken', 'told to hand over']);

test.each(ways)('a run goes on when the primary of a Sentinel set is %s', async (what) => {
  const ids = sized(1_200, 50_000);
  const { run, broken, stoodMs, resumedAfterMs, hasEnded, seconds } = await runFailover(onTestFinished, what, ids);
  const stood = `stood ${Math.round(stoodMs)} ms, went on ${Math.round(resumedAfterMs)} ms after another one was named`;
  console.log(`primary ${what}: ${stood}, ${seconds.toFixed(1)} s`, run.counts);
  expect({ broken, hasEnded }).toEqual({ broken: null, hasEnded: false });
  expect(run.counts.failed + run.counts.unknown + run.counts.not_attempted).toBe(0);
  if (isFull) expect(resumedAfterMs).toBeLessThan(5_000);
});

openSilentApi();

test('expunge check of a Sentinel set says who is primary and who is missing, also behind TLS', async () => {
  const sentinelPassword = 'canary-sentinel-4715';
  const made = hasOpenssl() ? makeCertificates(onTestFinished) : undefined;
  const set = await openSentinelSet(onTestFinished, { password, sentinelPassword, ...(made && { made }) });
  const [sentinel] = set.sentinels;
  const { port } = await set.primary();
  const tls = made ? { EXPUNGE_REDIS_CA_FILE: made.ca } : {};
  const env = {
    REDIS_URL: set.url,
    EXPUNGE_SENTINEL_PASSWORD_FILE: secretFile(sentinel!, sentinelPassword),
    ...tls,
  };
  const { lines, code } = await checkCommand(env);
  expect(lines).toContain(
    `ok redis sentinels: 3 of 3 name 127.0.0.1:${port} the primary, and enough of them are running to elect another one`,
  );
  expect(lines).toContain('ok redis replicas: 2 of 2 in sync');
  if (made) expect(lines).toContainEqual(expect.stringMatching(/^warn redis tls: TLSv1\.3, verified/));
  expect(code).toBe(0);
  const used = await command(['runs'], { env });
  expect([used.code, used.stderr]).toEqual([0, expect.not.stringContaining('warning')]);
  sentinel!.signal('SIGKILL');
  const killed = `warn redis sentinels: 2 of 3 name 127.0.0.1:${port} the primary; 127.0.0.1:${sentinel!.port}: connection refused`;
  await until('the check misses the killed one', async () => (await checkCommand(env)).lines.includes(killed));
  const withoutLogin = await checkCommand({ REDIS_URL: set.url, ...tls });
  expect(withoutLogin.lines.at(-1)).toContain('EXPUNGE_SENTINEL_PASSWORD_FILE');
  expect(withoutLogin.code).toBe(6);
  const unknown = await checkCommand({ ...env, REDIS_URL: set.url.replace(/main$/, 'other') });
  expect(unknown.lines.at(-2)).toBe('fail redis sentinels: they know no primary called "other", only main');
  const runs = await command(['runs'], { env: { ...env, REDIS_URL: set.url.replace(/main$/, 'other') } });
  expect(runs.stderr).toContain('/other: its sentinels: they know no primary called "other", only main');
  expect(runs.code).toBe(6);
});
