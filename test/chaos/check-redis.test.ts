import { describe, expect, it, test } from 'vitest';
import { checkCommand, openSilentApi, password, secretFile } from '../support/check-command.ts';
import { openCluster } from '../support/cluster.ts';
import { command } from '../support/command.ts';
import { openSentinelSet } from '../support/sentinel.ts';
import { hasOpenssl, makeCertificates } from '../support/tls.ts';

openSilentApi();

describe.runIf(hasOpenssl())('expunge check of a Redis behind TLS', () => {
  it('sees a Sentinel set behind TLS as well, and commands use it', async ({ onTestFinished }) => {
    const made = makeCertificates(onTestFinished);
    const set = await openSentinelSet(onTestFinished, { made, password });
    const env = { REDIS_URL: set.url, EXPUNGE_REDIS_CA_FILE: made.ca };
    const { lines, code } = await checkCommand(env);
    expect(lines).toContainEqual(
      expect.stringMatching(/^ok redis sentinels: 3 of 3 name 127\.0\.0\.1:\d+ the primary/),
    );
    expect(lines).toContainEqual(expect.stringMatching(/^warn redis tls: TLSv1\.3, verified/));
    expect(code).toBe(0);
    const { stderr, code: ended } = await command(['runs'], { env });
    expect(stderr).not.toContain('warning');
    expect(ended).toBe(0);
  });
});

test('expunge check of a Sentinel set says who is primary and who is missing', async ({ onTestFinished }) => {
  const set = await openSentinelSet(onTestFinished, { password, sentinelPassword: 'canary-sentinel-4715' });
  const [sentinel] = set.sentinels;
  const { port } = await set.primary();
  const env = { REDIS_URL: set.url, EXPUNGE_SENTINEL_PASSWORD_FILE: secretFile(sentinel!, 'canary-sentinel-4715') };
  const { lines, code } = await checkCommand(env);
  expect(lines).toContain(
    `ok redis sentinels: 3 of 3 name 127.0.0.1:${port} the primary, and enough of them are running to elect another one`,
  );
  expect(lines).toContain('ok redis replicas: 2 of 2 in sync');
  expect(code).toBe(0);
  sentinel!.signal('SIGKILL');
  expect((await checkCommand(env)).lines).toContain(
    `warn redis sentinels: 2 of 3 name 127.0.0.1:${port} the primary; 127.0.0.1:${sentinel!.port}: connection refused`,
  );
  const withoutLogin = await checkCommand({ REDIS_URL: set.url });
  expect(withoutLogin.lines.at(-1)).toContain('--sentinel-password-file');
  expect(withoutLogin.code).toBe(6);
  const unknown = await checkCommand({ ...env, REDIS_URL: set.url.replace(/main$/, 'other') });
  expect(unknown.lines.at(-2)).toBe('fail redis sentinels: they know no primary called "other", only main');
  const runs = await command(['runs'], { env: { ...env, REDIS_URL: set.url.replace(/main$/, 'other') } });
  expect(runs.stderr).toContain('/other: its sentinels: they know no primary called "other", only main');
  expect(runs.code).toBe(6);
});

test('expunge check of a cluster looks at each primary, and at the slots', async ({ onTestFinished }) => {
  const { url, nodes } = await openCluster(onTestFinished);
  const { lines, code } = await checkCommand({ REDIS_URL: `${url},127.0.0.1:9` });
  expect(lines).toContain('warn redis reach: 127.0.0.1:9: connection refused');
  expect(lines.filter((line) => /^ok redis memory: .*\(port \d+\)$/.test(line))).toHaveLength(3);
  expect(lines).toContain('ok redis cluster: 16384 of 16384 slots are served by 3 primaries');
  expect(lines.at(-1)).toBe('ok redis writes: it accepts them');
  expect(code).toBe(0);
  const alone = await checkCommand({ REDIS_URL: `redis://127.0.0.1:${nodes[0]!.port}` });
  expect(alone.lines).toContain('fail redis role: it is a server of a cluster');
  expect(alone.code).toBe(6);
});
