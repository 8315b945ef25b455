import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Command } from '../../../../src/commands/command.ts';
import { readCommandLine } from '../../../../src/commands/line/command-line.ts';
import { commands } from '../../../../src/commands/line/commands.ts';
import { settings } from '../../../../src/config/settings.ts';
import { ExpungeError } from '../../../../src/errors.ts';

const read = (...argv: string[]) => readCommandLine(argv, '1.0.0', () => {});
const all = (commands: readonly Command[]): Command[] =>
  commands.flatMap((one) => [one, ...all(one.subcommands ?? [])]);

describe('readCommandLine', () => {
  it('tells files, own options and settings apart', () => {
    expect(read('run', 'a.csv', 'b.csv', '-n', '--rate', '5/s', '--no-header', '--confirm', '1,203')).toMatchObject({
      commandName: 'run',
      args: ['a.csv', 'b.csv'],
      options: { dryRun: true, confirm: 1_203 },
      flags: { rate: '5/s', noHeader: true },
      color: true,
    });
  });

  it('leaves out what was not given', () => {
    expect(read('run', '-')).toMatchObject({ args: ['-'], options: {}, flags: {}, configFile: undefined });
  });

  it('takes global options before and after the command', () => {
    const call = { configFile: 'c.json', color: false };
    expect(read('--config', 'c.json', '--no-color', 'check')).toMatchObject(call);
    expect(read('check', '--config', 'c.json', '--no-color')).toMatchObject(call);
  });

  it('reads which runs are wanted', () => {
    const since = Date.UTC(2026, 10, 20);
    const options = { state: ['running', 'paused'], since, sort: 'failed', limit: 5, by: 'ana' };
    const typed = ['--state', 'running, paused', '--since', '2026-11-20', '--sort', 'failed', '--limit', '5'];
    expect(read('runs', ...typed, '--by', 'ana')?.options).toEqual(options);
    vi.useFakeTimers({ now: since });
    onTestFinished(() => void vi.useRealTimers());
    expect(read('runs', '--since', '2d')?.options).toEqual({ since: since - 172_800_000 });
    expect(() => read('runs', '--state', 'runing')).toThrow('"runing" is not one of');
    for (const text of ['yesterday', '2026', '2026-13-40', '2 d'])
      expect(() => read('runs', '--since', text), text).toThrow('expected a moment like');
    expect(() => read('stop-all', '--reason', 'x'.repeat(501))).toThrow('expected at most 500 characters, got 501');
  });

  it('takes a setting of the command above behind its subcommand', () => {
    expect(read('runs', 'remove', 'r1', '--state-dir', 'd')).toMatchObject({
      commandName: 'runs remove',
      args: ['r1'],
      flags: { stateDir: 'd' },
    });
  });

  it('returns nothing to do after help and version', () => {
    expect([read(), read('--help'), read('run', '--help'), read('--version')]).toEqual([null, null, null, null]);
  });

  it.each([
    [['run', 'x'], 'normal'],
    [['run', 'x', '-q'], 'quiet'],
    [['--quiet', 'run', 'x'], 'quiet'],
    [['run', 'x', '-yq'], 'quiet'],
    [['run', 'x', '-qy'], 'quiet'],
    [['runs', 'remove', 'x', '-yv'], 'verbose'],
    [['status', '--verbose'], 'verbose'],
  ])('reads from %j how much is told: %s', (argv, verbosity) => {
    const call = read(...argv);
    expect(call).toMatchObject({ verbosity });
    expect(call?.options.yes).toBe(
      argv.some((word) => /^-.*y/.test(word) && !word.startsWith('--')) ? true : undefined,
    );
  });

  it('refuses to be told in two ways how much to tell', () => {
    expect(() => read('run', 'x', '-qv')).toThrow('--quiet and --verbose exclude each other');
    expect(() => read('worker', '-v', '--log-level', 'warn')).toThrow('--log-level and --verbose both set');
  });

  it.each([
    ['--token', 'a token is never an argument, .*: set EXPUNGE_TOKEN, or name a file with --token-file FILE'],
    ['--api-key', 'a token is never an argument, .*: set EXPUNGE_TOKEN'],
    ['--client-secret', 'set EXPUNGE_CLIENT_SECRET, or name a file in EXPUNGE_CLIENT_SECRET_FILE'],
    ['--refresh-token', 'name a file that holds it in EXPUNGE_REFRESH_TOKEN_FILE'],
    ['--redis-url', 'set REDIS_URL'],
    ['--redis-password', 'name a file in EXPUNGE_REDIS_PASSWORD_FILE'],
  ])('says where a secret belongs that somebody gives as %s, and does not repeat it', (flag, words) => {
    for (const typed of [[`${flag}=geheim`], [flag, 'geheim']]) {
      const failure = failureOf(() => read('run', 'x', ...typed));
      expect(failure).toMatchObject({ code: 'USAGE', next: expect.stringMatching(words) });
      expect(failure.message + failure.next).not.toContain('geheim');
    }
  });

  it('says which variable sets what has no flag, and does not repeat the value', () => {
    const failure = failureOf(() => read('run', 'x', '--redis-ca-file', 'geheim'));
    expect(failure).toMatchObject({ code: 'USAGE', next: 'set EXPUNGE_REDIS_CA_FILE' });
    expect(failure.message).toMatch(/^no such option: --redis-ca-file\. /);
    expect(failure.message).not.toContain('geheim');
  });

  it.each(['--protect', '--stop-file'])('refuses a second %s, since the first would count for nothing', (flag) => {
    expect(() => read('run', 'x', flag, 'a', flag, 'b')).toThrow(`${flag} is given twice: a and b`);
    expect(read('run', 'x', '--rate', '5/s', '--rate', '6/s')?.flags).toEqual({ rate: '6/s' });
  });

  it.each([
    ['--dry-run=false', '--dry-run takes no value', 'write --dry-run alone, or leave it out for the opposite'],
    [
      '--no-header=1',
      '--no-header takes no value',
      'write --no-header alone, or set EXPUNGE_NO_HEADER=false for the opposite',
    ],
    ['--quiet=geheim', '--quiet takes no value', 'write --quiet alone, or leave it out for the opposite'],
    ['-n=false', 'a short option takes no value behind =', 'expunge run --help'],
  ])('says that a switch takes no value: %s', (typed, message, next) => {
    expect(failureOf(() => read('run', 'x', typed))).toMatchObject({ code: 'USAGE', message, next });
    expect(failureOf(() => read('run', 'x', '--dryrun=1')).message).toBe(
      'no such option: --dryrun. Did you mean --dry-run?',
    );
    expect(read('run', 'x', '--rate=5/s', '--confirm=3')).toMatchObject({ flags: { rate: '5/s' } });
  });

  it.each(['run', 'apply', 'retry', 'resume'])('says how several processes delete the run of %s', (command) => {
    for (const typed of [['--workers', '4'], ['--workers=4'], ['--detach', '--workers', '4']])
      expect(failureOf(() => read(command, 'x', ...typed))).toMatchObject({
        code: 'USAGE',
        message: 'no such option: --workers. Only the command worker has several processes',
        next: 'leave the run to workers with --detach, and start them: expunge worker --workers 4',
      });
    expect(failureOf(() => read('pause', 'x', '--workers', '4')).next).toBe('expunge pause --help');
    expect(read('worker', '--workers', '4')?.flags).toEqual({ workers: '4' });
  });

  it('says which commands need no token', () => {
    expect(failureOf(() => read('explain', 'views', 'v-1', '--token-file', 'token')).message).toBe(
      'no such option: --token-file. expunge explain sends no request to the API, and needs no token',
    );
  });

  it('refuses an own option that cannot be read', () => {
    expect(() => read('report', 'r1', '--format', 'parquet')).toThrow(
      '--format: "parquet" is not one of csv, ndjson, html.',
    );
  });
});

function failureOf(body: () => unknown): ExpungeError {
  try {
    body();
  } catch (error) {
    if (error instanceof ExpungeError) return error;
  }
  throw new Error('expected it to be refused');
}

describe('each command', () => {
  const examples = all(commands).flatMap(({ examples }) => examples.map(([line]) => line));

  it.each(examples.filter((line) => line.includes('expunge')))('has an example that can be typed: %s', (line) => {
    const [, typed = ''] = /expunge (.*?)( \||$)/.exec(line) ?? [];
    const words = typed.match(/"[^"]*"|\S+/g) ?? [];
    expect(read(...words.map((word) => word.replaceAll('"', '')))).not.toBeNull();
  });

  it.each(all(commands).map((command) => [command.name, command] as const))(
    '%s has no option that is also one of its settings',
    (_, command) => {
      const flags = command.settings.map((name) => `--${settings[name].flag}`);
      for (const option of command.options ?? []) expect(flags).not.toContain(/--[\w-]+/.exec(option.flags)?.[0]);
    },
  );
});
