import { describe, expect, it } from 'vitest';
import { flagsOf } from '../../../src/commands/command.ts';
import { commands } from '../../../src/commands/line/commands.ts';
import { settings } from '../../../src/config/settings.ts';
import { command } from '../../support/command.ts';

const expunge = (args: string[], env: NodeJS.ProcessEnv = {}) => command(args, { env });

describe('expunge', () => {
  it('prints its commands when nothing is asked for', async () => {
    const { code, stdout, stderr } = await expunge([]);
    expect([code, stderr]).toEqual([0, '']);
    for (const { name, hidden } of commands) if (!hidden) expect(stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'));
    expect(stdout).not.toContain('quickstart');
  });

  it('prints its version', async () => {
    const { code, stdout } = await expunge(['--version']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('helps with a command on one screen: examples, the options of daily use, exit codes, and where the others are', async () => {
    const { code, stdout } = await expunge(['run', '--help'], { COLUMNS: '80' });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: expunge run \[options\] <files\.\.\.>\n\ndelete .*\n\nExamples:\n/);
    expect(stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(40);
    for (const text of ['--max-deletes', 'Exit codes: 0 ', '--help --all lists every flag'])
      expect(stdout).toContain(text);
    expect(stdout).not.toContain('--stop-file');
  });

  it('helps with all of it: every setting with its variable and default', async () => {
    const { code, stdout } = await expunge(['run', '--help', '--all'], { COLUMNS: '100' });
    expect(code).toBe(0);
    expect(stdout).toMatch(/\(default: 64,\s+EXPUNGE_MAX_CONCURRENCY\)/);
    for (const name of flagsOf(commands[0]!)) expect(stdout).toContain(`--${settings[name].flag}`);
  });

  it('prints a topic into a pipe as plain text', async () => {
    const { code, stdout, stderr } = await expunge(['help', 'exit-codes'], { COLUMNS: '60' });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^Exit codes: what a script can rely on\n\nUse this page to .*\n\nexit {2}meaning\n/s);
    expect(stdout).not.toContain('\u001b');
  });

  it.each([
    [['rnu'], 'error: no such command: rnu. Did you mean run?\n  expunge --help\n'],
    [['run', 'x', '--dryrun'], 'error: no such option: --dryrun. Did you mean --dry-run?\n  expunge run --help\n'],
    [
      ['run', 'x', '--workers', '4'],
      'error: no such option: --workers. Only the command worker has several processes\n  leave the run to workers with --detach, and start them: expunge worker --workers 4\n',
    ],
    [['runs', 'remve'], 'error: expunge runs does not take "remve". Did you mean remove?\n  expunge runs --help\n'],
    [['run'], "error: missing required argument 'files'\n  expunge run --help\n"],
    [['redis'], 'error: expected one of status, stop after expunge redis\n  expunge redis --help\n'],
    [
      ['run', 'x', '--rate', 'fast'],
      'error: --rate: expected a rate like 200/s, 6000/min or 200/s,100000/day, got "fast"\n',
    ],
    [['run', 'x', '--confirm', 'all'], 'error: --confirm: expected a number like 249981 or 249,981, got "all"\n'],
  ])('answers %j with what was meant, and exits 2', async (args, words) => {
    expect(await expunge(args)).toEqual({ code: 2, stdout: '', stderr: words });
  });

  it('does not repeat the value of a flag it does not know', async () => {
    const { code, stderr } = await expunge(['run', 'x', '--token=eyJsecret']);
    expect(code).toBe(2);
    expect(stderr).toContain('no such option: --token.');
    expect(stderr).toContain('a token is never an argument');
    expect(stderr).not.toContain('secret');
  });

  it('refuses an unknown variable', async () => {
    const { code, stderr } = await expunge(['config', 'show'], { EXPUNGE_RATES: '5' });
    expect(code).toBe(2);
    expect(stderr).toContain('EXPUNGE_RATES: no such setting. Did you mean EXPUNGE_RATE?');
  });
});

describe('expunge config show', () => {
  it('shows each setting, its value and where it comes from, of secrets only the latter', async () => {
    const env = {
      EXPUNGE_TOKEN: 'geheim',
      EXPUNGE_PROXY: 'http://geheim@proxy.example:3128',
      EXPUNGE_TOKEN_COMMAND: 'curl -H "X-Key: geheim" https://auth.example',
      EXPUNGE_TOKEN_URL: 'https://auth.example/token?key=geheim',
      REDIS_URL: 'redis://:geheim@r',
    };
    const { code, stdout } = await expunge(['config', 'show', '--rate', '6000/min,100000/day'], env);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^rate +6000\/min,100000\/day +flag$/m);
    expect(stdout).toMatch(/^proxy +http:\/\/\*\*\*@proxy.example:3128 +EXPUNGE_PROXY$/m);
    expect(stdout).toMatch(/^keep +30d +default$/m);
    expect(stdout).toMatch(/^token-command +curl \*\*\* +EXPUNGE_TOKEN_COMMAND$/m);
    expect(stdout).toMatch(/^token-url +https:\/\/auth\.example\/token\?\*\*\* +EXPUNGE_TOKEN_URL$/m);
    expect(stdout).toMatch(/^token +set +from command$/m);
    expect(stdout).toMatch(/^redis +set +from REDIS_URL$/m);
    expect(stdout).not.toContain('geheim');
  });

  it('prints one JSON object a setting with --json', async () => {
    const { stdout } = await expunge(['config', 'show', '--json', '--no-header'], { EXPUNGE_TOKEN_FILE: 'token.txt' });
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(rows).toHaveLength(Object.keys(settings).length + 6);
    expect(rows).toContainEqual(expect.objectContaining({ v: 1, setting: 'no-header', value: 'true', source: 'flag' }));
    expect(rows).toContainEqual(expect.objectContaining({ setting: 'token', value: 'set', source: 'file' }));
  });

  it('says that there is a token for a server, and not which; it needs no server itself', async () => {
    const variables = { EXPUNGE_SERVER: 'https://ops.example.com', EXPUNGE_SERVER_TOKEN: 'hidden' };
    const { code, stdout } = await expunge(['config', 'show'], variables);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^server token +set +from EXPUNGE_SERVER_TOKEN$/m);
    expect(stdout).not.toContain('hidden');
    const given = await expunge(['runs', '--server-token=hidden'], {});
    expect(given).toMatchObject({ code: 2, stderr: expect.stringContaining('set EXPUNGE_SERVER_TOKEN') });
    expect(given.stderr).not.toContain('hidden');
  });
});

describe('--verbose', () => {
  const logged = (stderr: string) =>
    stderr
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line));

  it('logs what a command is, which settings it was given, and how it ended; never their values', async () => {
    const { code, stdout, stderr } = await expunge(['config', 'show', '-v', '--rate', '5/s'], {
      EXPUNGE_ACCOUNT: 'acme',
    });
    expect(code).toBe(0);
    expect(stdout).not.toContain('{');
    expect(stderr).not.toContain('acme');
    expect(logged(stderr)).toMatchObject([
      { level: 'debug', msg: 'command started', settings: { rate: 'flag', account: 'environment' } },
      { level: 'debug', msg: 'command ended', command: 'config show', exit: 0 },
    ]);
  });

  it('shows where an error comes from', async () => {
    const line = ['run', 'missing.csv', '--resource', 'views', '--base-url', 'https://api.example.com', '--dry-run'];
    const [short, long] = [await expunge(line), await expunge([...line, '--verbose'])];
    expect(short.stderr).not.toMatch(/^ {4}at /m);
    const [failed] = logged(long.stderr).filter(({ level }) => level === 'error');
    expect(failed).toMatchObject({
      exit: 2,
      reason: 'missing.csv: not found',
      stack: expect.stringMatching(/^ {4}at /m),
    });
    expect(short.stderr).toContain(failed!.reason);
  });
});
