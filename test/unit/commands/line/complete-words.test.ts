import { describe, expect, it, onTestFinished } from 'vitest';
import { flagsOf } from '../../../../src/commands/command.ts';
import { allOptions } from '../../../../src/commands/line/command-line.ts';
import { commands } from '../../../../src/commands/line/commands.ts';
import { completeWords } from '../../../../src/commands/line/complete-words.ts';
import { settings } from '../../../../src/config/settings.ts';
import { bearerForm, defineResources } from '../../../../src/model/resource.ts';

const at = (...line: string[]) => completeWords(allOptions(), commands, line);

/** The words that are offered; else what the shell is told to offer. */
function offered(...line: string[]): string[] | string {
  const { completion } = at(...line);
  return completion.kind === 'words' ? completion.words.map(({ word }) => word) : completion.kind;
}

describe('completion offers', () => {
  it('every command that help names, and no hidden one', () => {
    const shown = commands.filter(({ hidden }) => !hidden).map(({ name }) => name);
    expect(offered('')).toEqual(expect.arrayContaining(shown));
    expect(offered('')).not.toContain('quickstart');
  });

  it('every flag of a command, with those of the program', () => {
    const run = commands.find(({ name }) => name === 'run')!;
    const flags = flagsOf(run).map((name) => `--${settings[name].flag}`);
    expect(offered('run', '-')).toEqual(expect.arrayContaining([...flags, '--dry-run', '--config', '--help']));
    expect(offered('schedule', 'add', '--cr')).toEqual(['--cron']);
    expect(offered('runs', 'remove', '--yes', '-')).not.toContain('--yes');
  });

  it.each<[line: string[], words: string[] | string]>([
    [['ru'], ['run', 'runs']],
    [['runs', 're'], ['remove']],
    [
      ['report', 'm4tz', '--only', 'failed,unk'],
      ['failed,unknown', 'failed,unknown_resource'],
    ],
    [['retry', 'm4tz', '--only', 'un'], ['unknown']],
    [['ap'], ['apply']],
    [['apply', ''], []],
    [['redis', 'sta'], ['status']],
    [['report', 'm4tz', '--manifest', ''], 'files'],
    [
      ['explain', ''],
      ['annotations', 'views'],
    ],
    [['schedule', 'pa'], ['pause']],
    [['--no-color', 'stat'], ['status']],
    [
      ['run', 'x.csv', '--resource', ''],
      ['annotations', 'views'],
    ],
    [['run', 'x.csv', '--resource=v'], ['views']],
    [['run', '--resource', 'views', ''], 'files'],
    [['report', 'm4tz', '--join', ''], 'files'],
    [['run', '--resource=views', ''], 'files'],
    [['run', '-n', 'x.csv', 'y'], 'files'],
    [['run', '--', '-'], 'files'],
    [['run', '--protect', ''], 'files'],
    [['--config', ''], 'files'],
    [['report', 'r', '-o', ''], 'files'],
    [['report', 'r', '-ox'], []],
    [['run', '--state-dir', ''], 'folders'],
    [['run', '--rate', ''], []],
    [['run', '--no-such', ''], 'files'],
    [['runs', '--state', 'running,pa'], ['running,paused']],
    [
      ['runs', '--state=canc'],
      ['cancelling', 'cancelled'],
    ],
    [['worker', '--log-level', 'd'], ['debug']],
    [['rate', 'r', ''], ['none']],
    [['target', 'limit', ''], ['none']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['status', ''], 'runs'],
    [['status', '--state-dir', 'x', '2026'], 'runs'],
    [['rate', ''], 'runs'],
    [['status', 'r', ''], []],
    [['nonsense', ''], []],
  ])('after %j: %j', (line, words) => {
    expect(offered(...line)).toEqual(words);
  });

  it.each([['run', '--resource'], ['check', '--resource'], ['schedule', 'add', 'x', '--resource'], ['explain']])(
    'the resources of the configuration file after %s %s',
    (...line) => {
      onTestFinished(() => defineResources({}));
      defineResources({ reports: { path: '/v1/reports/{id}', success: [204], absent: [404], ...bearerForm } });
      expect(offered(...line, '')).toEqual(['annotations', 'views', 'reports']);
      expect(offered(...line, 'rep')).toEqual(['reports']);
    },
  );

  it('what was given before, so that runs are looked for where the line would', () => {
    const { given } = at('status', '--state-dir', 'here', '--audit', '--config=c.json', '');
    expect(Object.fromEntries(given)).toEqual({
      '--state-dir': 'here',
      '--audit': '',
      '--config': 'c.json',
    });
  });
});
