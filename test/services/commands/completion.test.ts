import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { command } from '../../support/command.ts';
import { type OwnRedis, openOwnRedis } from '../../support/own-redis.ts';
import { bin, runProgram } from '../../support/processes.ts';

const folder = mkdtempSync(join(tmpdir(), 'expunge-completion-'));
const atEnd: (() => Promise<void>)[] = [];
const run = '20261120-1602-m4tz';
let redis: OwnRedis;

beforeAll(async () => {
  redis = await openOwnRedis((task) => atEnd.push(task));
  const connection = redis.connect();
  await connection.zadd(keys.runs, 1, '20261119-0900-k7qd', 2, run);
  await connection.hset(keys.run(run), { state: 'paused', files: '["old.csv"]' });
  // The command as a user has it. What a shell asks goes to the program; what is typed in the end is shown.
  const shim = `#!/bin/sh\n[ "$1" = complete ] && exec "${process.execPath}" "${bin}" "$@"\nprintf 'GOT'\nprintf ' <%s>' "$@"\necho\n`;
  writeFileSync(join(folder, 'expunge'), shim);
  chmodSync(join(folder, 'expunge'), 0o755);
  writeFileSync(join(folder, 'list of views.csv'), '');
});
afterAll(async () => {
  for (const task of atEnd) await task();
  rmSync(folder, { recursive: true, force: true });
});

const has = (program: string, ...args: string[]) => spawnSync(program, args).status === 0;
const hasTerminals = has('script', '--version'); // the one of util-linux: that of macOS takes other arguments

/** How each shell is started without anybody's settings, and how it loads the completion. */
const shells = {
  bash: ['bash --norc --noprofile -i', 'source completion.bash'],
  zsh: ['zsh -f -i', 'autoload -U compinit; compinit -D -u; source completion.zsh'],
  fish: ['fish --no-config --interactive', 'source completion.fish'],
} as const;
type Shell = keyof typeof shells;

/** What the command gets from lines with tabs in them that somebody types into a shell, one after the other. */
async function typed(shell: Shell, lines: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string[]> {
  const [program, load] = shells[shell];
  const path = `${folder}:${process.env.PATH}`;
  const usual = { PATH: path, HOME: folder, SHELL: '/bin/sh', REDIS_URL: redis.url };
  const terminal = ['-qec', `stty cols 200 rows 50; ${program}`, '/dev/null'];
  const options = { cwd: folder, env: { ...usual, ...env }, input: `${[load, ...lines].join('\n')}\nexit\n` };
  const shown = (await runProgram('script', terminal, options)).stdout;
  return [...shown.matchAll(/^GOT (.*?)\r?$/gm)].map(([, words]) => words!);
}

const completed: [what: string, line: string, words: string][] = [
  ['a command and a flag', 'expunge pau\tr --reas\twhy', '<pause> <r> <--reason> <why>'],
  ['a value', 'expunge check --resource v\t', '<check> <--resource> <views>'],
  ['a value behind =', 'expunge check --resource=v\t', '<check> <--resource=views>'],
  ['one of several', 'expunge runs --state running,pa\t', '<runs> <--state> <running,paused>'],
  [
    'what stands behind a URL',
    'expunge check --base-url https://a.example:1/x --prob\tv',
    '<check> <--base-url> <https://a.example:1/x> <--probe-id> <v>',
  ],
  ['a run', 'expunge pause 20261120\t', `<pause> <${run}>`],
  ['a file', 'expunge run list\t', '<run> <list of views.csv>'],
];

describe.each(Object.keys(shells) as Shell[])('in %s', (shell) => {
  const isHere = hasTerminals && has(shell, '-c', 'exit 0');

  it.skipIf(!isHere)('TAB completes words, and leaves a run as it is where Redis cannot be reached', async () => {
    const { stdout } = await command(['completion', shell]);
    writeFileSync(join(folder, `completion.${shell}`), stdout);
    const got = await typed(
      shell,
      completed.map(([, line]) => line),
    );
    expect(completed.map(([what], n) => [what, got[n]])).toEqual(completed.map(([what, , words]) => [what, words]));
    const away = await typed(shell, ['expunge pause 20261120\t'], { REDIS_URL: 'redis://127.0.0.1:1' });
    expect(away).toEqual(['<pause> <20261120>']);
  });
});

describe('what a shell asks', () => {
  const asked = (line: string[], env: NodeJS.ProcessEnv) => command(['complete', ...line], { env });

  it('is answered with the newest runs first, and what they are', async () => {
    const { stdout } = await asked(['status', ''], { REDIS_URL: redis.url });
    expect(stdout).toBe(`words\n${run}\tpaused, old.csv\n20261119-0900-k7qd\t\n`);
  });

  it.each<[what: string, env: NodeJS.ProcessEnv]>([
    ['a Redis that is away', { REDIS_URL: 'redis://127.0.0.1:1' }],
    ['an address that is none', { REDIS_URL: 'nonsense' }],
    ['a variable that nobody knows', { EXPUNGE_NONSENSE: '1' }],
    ['no private Redis', { EXPUNGE_STATE_DIR: join(folder, 'none') }],
  ])('is answered without runs and without a word about %s', async (_, env) => {
    expect(await asked(['status', ''], env)).toEqual({ code: 0, stdout: 'words\n', stderr: '' });
  });

  it('is answered while Redis hangs', async () => {
    process.kill(redis.pid, 'SIGSTOP');
    const answer = await asked(['status', ''], { REDIS_URL: redis.url });
    process.kill(redis.pid, 'SIGCONT');
    expect(answer).toEqual({ code: 0, stdout: 'words\n', stderr: '' });
  });
});

describe('expunge completion', () => {
  it('prints a script whatever is wrong with variables and settings: a shell reads it at each start', async () => {
    writeFileSync(join(folder, 'wrong.json'), 'no JSON');
    const env = { EXPUNGE_CONFIG: join(folder, 'wrong.json'), EXPUNGE_NONSENSE: '1' };
    const { code, stdout, stderr } = await command(['completion', 'bash'], { env });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('complete -o default -F _expunge expunge');
  });

  it('refuses a shell it does not know', async () => {
    const { code, stderr } = await command(['completion', 'powershell']);
    expect([code, stderr]).toEqual([2, 'error: "powershell" is not one of bash, zsh, fish.\n']);
  });
});
