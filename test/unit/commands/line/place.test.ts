import { describe, expect, it } from 'vitest';
import { readCommandLine } from '../../../../src/commands/line/command-line.ts';
import { makeToType, nothingGiven } from '../../../../src/commands/line/place.ts';

/** What a command line that was started so prints to be typed. */
function toTypeAt(line: string, program = 'expunge') {
  return makeToType(program, readCommandLine(line.split(' '), '', () => {})!);
}

describe('a command that a command prints', () => {
  it.each([
    ['status r1 --state-dir /x', ['status', 'r1', '--watch'], 'expunge status r1 --watch --state-dir /x'],
    ['status r1 --state-dir=/x', ['runs remove', 'r1'], 'expunge runs remove r1 --state-dir /x'],
    ['--config a.json status r1', ['resume', 'r1'], 'expunge resume r1 --config a.json'],
    ['status r1 --server http://127.0.0.1:1', ['resume', 'r1'], 'expunge resume r1 --server http://127.0.0.1:1'],
    ['status r1 --server http://127.0.0.1:1', ['token add', 'NAME'], 'expunge token add NAME'],
    ['status r1 --state-dir /x --config c', ['help', 'redis'], 'expunge help redis'],
    ['status r1 --state-dir /x', ['run', '--help'], 'expunge run --help'],
    [
      'check --base-url https://a.example --account acme --token-file t --proxy http://p:1',
      ['check', '--verdicts'],
      'expunge check --verdicts --base-url https://a.example --account acme --token-file t --proxy http://p:1',
    ],
    [
      'run l --base-url https://a.example --account acme --state-dir x',
      ['start-all', '--base-url', 'https://b.example'],
      'expunge start-all --base-url https://b.example --state-dir x',
    ],
    ['run l --base-url https://a.example', ['status', 'r1'], 'expunge status r1'],
    ['target limit 100/day --state-dir x', ['target limit 100/day'], 'expunge target limit 100/day --state-dir x'],
    ['run l --rate 5/s --yes --state-dir x', ['status', 'r1'], 'expunge status r1 --state-dir x'],
  ] as const)('after `expunge %s` is placed as its command can be: %j', (line, [command, ...words], expected) => {
    expect(toTypeAt(line)(command, ...words)).toBe(expected);
  });

  it('has the flags of its place as words of a shell', () => {
    const given = { flags: { stateDir: "it's here", server: '-p' }, configFile: 'my config.json' };
    expect(makeToType('expunge', given)('runs')).toBe(
      "expunge runs --config 'my config.json' --state-dir 'it'\\''s here' --server=-p",
    );
  });

  it('shows no secret', () => {
    const flags = { server: 'https://ana:geheim@s.example', tokenCommand: 'pass geheim' };
    const shown = makeToType('expunge', { flags, configFile: undefined });
    expect(shown('status', 'r1')).toBe("expunge status r1 --server 'https://***@s.example'");
    expect(shown('check')).toBe("expunge check --token-command '***'");
  });

  it('is started as this one was, also before the command line is read', () => {
    expect(makeToType('./expunge', nothingGiven)('schedule add', '--help')).toBe('./expunge schedule add --help');
    expect(makeToType('node ./dist/bin.js', nothingGiven)('', '--help')).toBe('node ./dist/bin.js --help');
    expect(toTypeAt('runs', "'/my bin/expunge'")('target acknowledge')).toBe("'/my bin/expunge' target acknowledge");
  });
});
