import { describe, expect, it } from 'vitest';
import { describeSource, readSources } from '../../../src/config/list-source.ts';

describe('the sources of a configuration file', () => {
  it('are files, a command or a URL', () => {
    const sources = readSources({
      inbox: { glob: 'in/*.csv', archive: 'done', settle: '2s' },
      query: { command: ['psql', '-Atc', 'select 1'], timeout: '1min' },
      export: { url: 'https://lists.example.com/x.csv?signature=geheim' },
    });
    expect(sources).toEqual({
      inbox: { kind: 'glob', glob: 'in/*.csv', archive: 'done', settleMs: 2_000 },
      query: { kind: 'command', command: ['psql', '-Atc', 'select 1'], timeoutMs: 60_000 },
      export: {
        kind: 'url',
        url: 'https://lists.example.com/x.csv?signature=geheim',
        caFile: null,
        timeoutMs: 600_000,
      },
    });
    expect(Object.values(sources).map(describeSource)).toEqual([
      'files in/*.csv',
      'command psql',
      'URL https://lists.example.com/x.csv',
    ]);
  });

  it.each([
    [[], 'expected an object with a source for each name'],
    [{ 'a b': { glob: 'x' } }, '"a b": expected a name of letters'],
    [{ a: {} }, '"a": expected one of {"glob"'],
    [{ a: 'x' }, '"a": expected one of {"glob"'],
    [{ a: { glob: 'x', url: 'https://x.example' } }, '"a": expected one of {"glob"'],
    [{ a: { glob: 'x', archiv: 'y' } }, '"a": "archiv" is not an option of "glob". Did you mean archive?'],
    [{ a: { command: 'psql -c x' } }, '"a": "command": expected a list of a program and its arguments'],
    [{ a: { command: [] } }, 'expected a list of a program'],
    [{ a: { command: ['x'], timeout: 'long' } }, '"a": "timeout": expected a duration'],
    [{ a: { url: 'ftp://x.example' } }, '"a": "url": expected a URL like'],
    [{ a: { url: 'https://ana:geheim@x.example' } }, 'it cannot hold a user name or password'],
  ])('of %j are refused', (value, words) => {
    expect(() => readSources(value)).toThrow(words);
    expect(() => readSources(value)).not.toThrow(/geheim/);
  });
});
