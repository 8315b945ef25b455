import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { verbs } from '../../src/commands/verbs.ts';
import { settings } from '../../src/config/settings.ts';

const source = (path: string) => fileURLToPath(new URL(`../../src/${path}`, import.meta.url));
const cwd = mkdtempSync(join(tmpdir(), 'expunge-cli-'));
afterAll(() => rmSync(cwd, { recursive: true }));

type Ended = { code: number | null; stdout: string; stderr: string };

function start(
  program: string,
  args: string[],
  env: NodeJS.ProcessEnv = {},
  typed: [afterText: string, text: string] = ['', ''],
) {
  return new Promise<Ended>((resolve, reject) => {
    const child = spawn(program, args, { cwd, env: { PATH: process.env.PATH, TERM: 'xterm', ...env } });
    const ended: Ended = { code: null, stdout: '', stderr: '' };
    let [waitFor, text] = typed;
    child.stdout.on('data', (chunk) => {
      ended.stdout += chunk;
      if (waitFor && ended.stdout.includes(waitFor)) {
        waitFor = '';
        child.stdin.write(text);
      }
    });
    child.stderr.on('data', (chunk) => {
      ended.stderr += chunk;
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ ...ended, code }));
    if (!waitFor) child.stdin.end();
  });
}

const expunge = (args: string[], env: NodeJS.ProcessEnv = {}) =>
  start(process.execPath, [source('bin.js'), ...args], env);

describe('expunge', () => {
  it('prints its verbs when nothing is asked for', async () => {
    const { code, stdout, stderr } = await expunge([]);
    expect([code, stderr]).toEqual([0, '']);
    for (const { name, hidden } of verbs) if (!hidden) expect(stdout).toMatch(new RegExp(`^  ${name}\\b`, 'm'));
    expect(stdout).not.toContain('quickstart');
  });

  it('prints its version', async () => {
    const { code, stdout } = await expunge(['--version']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('helps with a verb on one screen: examples, the options of daily use, exit codes, and where the others are', async () => {
    const { code, stdout } = await expunge(['run', '--help'], { COLUMNS: '80' });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: expunge run \[options\] <files\.\.\.>\n\ndelete .*\n\nExamples:\n/);
    expect(stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(40);
    for (const text of ['--max-deletes', 'Exit codes: 0 ', '--help --all lists every setting'])
      expect(stdout).toContain(text);
    expect(stdout).not.toContain('--redis-ca-file');
  });

  it('helps with all of it: every setting with its variable and default', async () => {
    const { code, stdout } = await expunge(['run', '--help', '--all'], { COLUMNS: '100' });
    expect(code).toBe(0);
    expect(stdout).toMatch(/\(default: 64,\s+EXPUNGE_MAX_CONCURRENCY\)/);
    for (const name of verbs[0]!.settings) expect(stdout).toContain(`--${settings[name].flag}`);
  });

  it('prints a topic into a pipe as plain text', async () => {
    const { code, stdout, stderr } = await expunge(['help', 'exit-codes'], { COLUMNS: '60' });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^Exit codes: what a script can rely on\n\nexit {2}meaning\n/);
    expect(stdout).not.toContain('\u001b');
  });

  it.each([
    [['rnu'], 'error: no such command: rnu. Did you mean run?\n  expunge --help\n'],
    [['run', 'x', '--dryrun'], 'error: no such option: --dryrun. Did you mean --dry-run?\n  expunge run --help\n'],
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

  it('is not troubled when the reader of its output leaves', async () => {
    const line = `{ sleep 0.2; "${process.execPath}" "${source('bin.js')}" config show; echo "exit $?" >&2; } | true`;
    expect(await start('sh', ['-c', line])).toEqual({ code: 0, stdout: '', stderr: 'exit 0\n' });
  });
});

describe.skipIf(!existsSync('/dev/full'))('output that cannot be written', () => {
  it('is a mistake, unlike a reader that left', async () => {
    const line = `"${process.execPath}" "${source('bin.js')}" config show > /dev/full`;
    const { code, stderr } = await start('sh', ['-c', line]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: the output is incomplete: no space left on the disk\n {2}make room/);
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
    expect(rows).toHaveLength(Object.keys(settings).length + 3);
    expect(rows).toContainEqual(expect.objectContaining({ v: 1, setting: 'no-header', value: 'true', source: 'flag' }));
    expect(rows).toContainEqual(expect.objectContaining({ setting: 'token', value: 'set', source: 'file' }));
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
      { level: 'debug', msg: 'command ended', verb: 'config show', exit: 0 },
    ]);
  });

  it('shows where an error comes from', async () => {
    const line = ['run', 'missing.csv', '--resource', 'views', '--base-url', 'https://api.example.com', '--dry-run'];
    const [short, long] = [await expunge(line), await expunge([...line, '--verbose'])];
    expect(short.stderr).not.toMatch(/^ {4}at /m);
    expect(long.stderr).toContain(short.stderr);
    expect(long.stderr).toMatch(/^ {4}at /m);
  });
});

describe('the version guard', () => {
  const pretend = (version: string) =>
    `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`;
  const on = (version: string) =>
    start(process.execPath, ['--import', pretend(version), source('bin.js'), '--version']);

  it.each(['20.20.2', '22.18.0'])('refuses Node %s in words', async (version) => {
    const { code, stdout, stderr } = await on(version);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(
      new RegExp(`^error: expunge needs Node 22.19 or newer, this is Node ${version}\n  .*[.]/expunge.*\n$`),
    );
  });

  it.each(['22.19.0', '24.0.0'])('lets Node %s pass', async (version) => {
    expect(await on(version)).toMatchObject({ code: 0, stderr: '' });
  });
});

describe.skipIf(!existsSync('/usr/bin/script'))('a confirmation on a terminal', () => {
  const question = `{ expected: 1203, what: '1,203 views', yes: false, confirm: null }`;
  const asking = '{ stdin: process.stdin, stderr: process.stderr, env: process.env, stdinIsData';
  const program = (stdinIsData: boolean) => `
    import { confirmCount } from '${source('terminal/ask.ts')}';
    const words = await confirmCount(${question}, ${asking}: ${stdinIsData} }).then(() => 'CONFIRMED', (error) => error.message);
    console.log('[' + words + ']');
    if (${stdinIsData}) for await (const data of process.stdin) console.log('[' + String(data).trim() + ']');
    process.exit();`;
  const typing = (text: string, stdinIsData = false) => {
    const node = `"${process.execPath}" --input-type=module -e "$PROGRAM"`;
    const line = `stty cols 100 rows 30; ${stdinIsData ? 'echo data |' : ''} ${node}`;
    const env = { PROGRAM: program(stdinIsData), SHELL: '/bin/sh' };
    return start('script', ['-qec', line, '/dev/null'], env, ['Type 1203 to delete 1,203 views', text]);
  };

  it.each(['1203\r', '1,203\r'])('is given by typing the count: %j', async (text) => {
    expect((await typing(text)).stdout).toContain('[CONFIRMED]');
  });

  it.each(['1204\r', 'y\r', '\r', '\u0003'])('is not given by %j', async (text) => {
    expect((await typing(text)).stdout).toContain('[not confirmed; nothing was sent]');
  });

  it('comes from the terminal itself when stdin holds the ids, which stay unread', async () => {
    const { stdout } = await typing('1203\r', true);
    expect(stdout).toContain('[CONFIRMED]');
    expect(stdout).toContain('[data]');
  });
});
