import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Command } from '../../src/commands/command.ts';
import { commands } from '../../src/commands/line/commands.ts';
import { idPath } from '../../src/model/check-id.ts';
import { madeId } from '../../src/sandbox/objects.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/server.ts';
import { invoke } from '../support/command.ts';
import { startExpunge, until } from '../support/processes.ts';
import { testRedisUrl } from '../support/redis.ts';
import { forgetTarget } from '../support/redis-keys.ts';

// What holds for all commands: --json and --quiet.

/** In this order: a run of its own, then one that is left to workers, which there are none of, and is steered until it is gone. */
const lines: [commandName: string, args: string, types: string[]][] = [
  ['config show', '', ['setting']],
  ['check', '', ['check']],
  ['check', '--verdicts', ['verdict', 'halt']],
  ['redis status', '', ['redis']],
  ['redis stop', '', ['redis']],
  ['run', 'FOLDER/list.txt --resource views --dry-run', ['plan']],
  ['plan', 'FOLDER/planned.txt --resource views', ['plan']],
  ['apply', 'PLAN --yes', ['progress', 'pace', 'summary']],
  ['plan', 'FOLDER/kept.txt --resource views', ['plan']],
  ['plans', '', ['plan']],
  ['plans show', 'PLAN', ['plan']],
  ['plans refuse', 'PLAN --reason early', ['plan']],
  ['plan', 'FOLDER/kept.txt --resource views', ['plan']],
  ['plans withdraw', 'PLAN --yes', ['withdrawn']],
  ['plan', 'FOLDER/kept.txt --resource views', ['plan']],
  ['apply', 'PLAN --yes --detach', ['summary']],
  ['run', 'FOLDER/list.txt --resource views --yes', ['progress', 'pace', 'summary']],
  ['verify', 'DELETED --sample 1 --yes', ['verified']],
  ['check', '--semantics --resource views --yes', ['check']],
  ['run', 'FOLDER/others.txt --resource views --yes --detach', ['summary']],
  ['runs', '', ['summary']],
  ['status', 'RUN', ['summary']],
  ['status', 'RUN --audit', ['audit', 'summary']],
  ['status', '', ['target']],
  ['pause', 'RUN', ['summary']],
  ['resume', 'RUN', ['summary']],
  ['rate', 'RUN 5/s', ['rate']],
  ['stop-all', '', ['stop-all']],
  ['start-all', '', ['start-all']],
  ['target release', '', ['target']],
  ['target forget-rate', '', ['target']],
  ['target limit', '200/s,100000/day', ['target']],
  ['target grace', '10min', ['target']],
  ['target acknowledge', '', ['target']],
  ['cancel', 'RUN --yes', ['summary']],
  ['status', 'RUN --watch', ['summary']],
  ['retry', 'RUN --dry-run', ['plan']],
  ['retry', 'RUN --only http_409', ['nothing_to_retry']],
  ['explain', `views ${madeId('views', 3)}`, ['appearance']],
  ['report', 'RUN --verify', ['verification']],
  ['report', 'RUN --output FOLDER/report.csv', ['report']],
  ['report', 'RUN --output FOLDER/report.csv --manifest FOLDER/manifest.json', ['manifest']],
  ['report', '--check FOLDER/manifest.json', ['manifest_check']],
  ['runs remove', 'RUN --yes', ['removed']],
  ['schedule add', 'nightly --cron @daily --from all --resource views --max-deletes 5', ['schedule']],
  ['schedule list', '', ['schedule']],
  ['schedule preview', 'nightly', ['occurrence']],
  ['schedule run', 'nightly --dry-run', ['plan']],
  ['schedule run', 'nightly', ['scheduled']],
  ['schedule pause', 'nightly', ['schedule']],
  ['schedule list', '', ['schedule']],
  ['schedule resume', 'nightly', ['schedule']],
  ['schedule remove', 'nightly --yes', ['schedule']],
  ['token add', 'every-command', ['token']],
  ['token list', '', ['token', 'audit']],
  ['token revoke', 'every-command', ['token']],
];

/** A target, lists and a configuration file of its own for all lines of a test. */
function openPlace() {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-commands-'));
  const path = (name: string) => join(folder, name);
  let sandbox: Sandbox;
  let detached = '';
  let deleted = '';
  let plan = '';
  beforeAll(async () => {
    sandbox = await startSandbox({ objects: { annotations: 0, views: 4 } });
    writeFileSync(path('list.txt'), `${madeId('views', 1)}\n${madeId('views', 2)}\n`);
    writeFileSync(path('planned.txt'), `${madeId('views', 4)}\n`);
    writeFileSync(path('kept.txt'), `${madeId('views', 5)}\n`);
    writeFileSync(path('others.txt'), `${madeId('views', 3)}\n`);
    const sources = { all: { glob: path('list.txt'), settle: '1ms' } };
    writeFileSync(path('config.json'), JSON.stringify({ baseUrl: sandbox.url, stateDir: path('state'), sources }));
  });
  afterAll(async () => {
    await forgetTarget(sandbox.url);
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  });
  /** Does the line with this flag, and returns what it wrote. RUN is the run that was left to workers, DELETED the one before, PLAN the last plan. */
  return async (commandName: string, args: string, flag: string) => {
    const words = `${commandName} ${args}`.split(' ').filter(Boolean);
    const argv = words.map((word) =>
      word === 'RUN' ? detached : word.replace('FOLDER', folder).replace('PLAN', plan).replace('DELETED', deleted),
    );
    const env = { REDIS_URL: testRedisUrl(), EXPUNGE_TOKEN: sandbox.token, EXPUNGE_CONFIG: path('config.json') };
    const invoked = invoke([...argv, flag], env);
    const exit = await invoked.ended.catch((error) => {
      throw Object.assign(error, { told: invoked.told() });
    });
    expect(exit).toBe(args.includes('--watch') ? 3 : 0); // it ends as the run did, of which two ids failed
    const [stdout, stderr] = [invoked.printed(), invoked.told()];
    plan = /[\da-f]{16}-[\da-f]{8}/.exec(stdout + stderr)?.[0] ?? plan;
    if (commandName === 'run' && args.endsWith('--yes')) deleted = /\d{8}-\d{4}-\w{4}/.exec(stdout + stderr)![0];
    if (args.includes('--detach')) detached = /\d{8}-\d{4}-\w{4}/.exec(stdout + stderr)![0];
    return { stdout, stderr };
  };
}

function objectsIn(text: string): Record<string, unknown>[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

describe('with --json', () => {
  const done = openPlace();

  it.each(lines)('expunge %s %s prints objects with v and type, one a line', async (commandName, args, types) => {
    const objects = objectsIn((await done(commandName, args, '--json')).stdout);
    for (const object of objects) expect(object).toMatchObject({ v: 1, type: expect.any(String) });
    expect([...new Set(objects.map(({ type }) => type))]).toEqual(types);
  });

  it('expunge sandbox prints where it is, and at the end what came', async () => {
    const running = startExpunge(['sandbox', '--resource', 'views=3', '--json'], {});
    await until('its first line', () => running.stdout.includes('\n'));
    const [first] = objectsIn(running.stdout);
    expect(first).toMatchObject({ v: 1, type: 'sandbox', url: expect.stringContaining('http://127.0.0.1:'), views: 3 });
    const headers = { authorization: `Bearer ${first!.token}` };
    await fetch(`${first!.url}${idPath('views', madeId('views', 1))}`, { method: 'DELETE', headers });
    running.signal('SIGINT');
    expect((await running.ended).code).toBe(0);
    const summary = { v: 1, type: 'sandbox_summary', requests: 1, answers: { 204: 1 }, deleted: 1 };
    expect(objectsIn(running.stdout).at(-1)).toMatchObject(summary);
  });

  it('a report on stdout is refused: it would be mixed with what is told about it', async () => {
    await expect(done('report', 'x', '--json')).rejects.toMatchObject({ code: 'USAGE' });
  });
});

describe('with --quiet', () => {
  const done = openPlace();
  const isWarning = (line: string) => line.startsWith('warning: ');

  it.each(lines)(
    'expunge %s %s tells its result, and neither where Redis is nor what to do next',
    async (commandName, args) => {
      const { stdout, stderr } = await done(commandName, args, '-q');
      const shown = `${stdout}${stderr}`.split('\n').filter((line) => !isWarning(line));
      expect(shown.join('')).not.toBe('');
      expect(shown.filter((line) => /^Redis: |\bexpunge [a-z]/.test(line))).toEqual([]);
    },
  );
});

describe('with --quiet, a question', () => {
  const done = openPlace();

  it('is asked all the same, and says what it is about', async () => {
    const line = ['run', 'FOLDER/list.txt --resource views'] as const;
    await expect(done(...line, '-q')).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining('there is no terminal to confirm on'),
      told: expect.stringContaining('2 views'),
    });
  });
});

describe('every command', () => {
  /** Why a command has no `--json`. */
  const reasons: Record<string, string> = {
    help: 'it prints pages for people',
    completion: 'prints a script',
    alerts: 'prints a rules file',
    worker: 'its log on stderr is JSON already, and it has no results',
    quickstart: 'shows people what a run is like; the run in it has --json',
  };
  const leaves = (commands: readonly Command[], above = ''): [commandName: string, command: Command][] =>
    commands.flatMap((command) => {
      const commandName = `${above}${command.name}`;
      const own: [string, Command][] = command.load === null ? [] : [[commandName, command]];
      return [...own, ...leaves(command.subcommands ?? [], `${commandName} `)];
    });

  it.each(leaves(commands))(
    '%s prints JSON as above, or there is a reason why not',
    (commandName, { options = [] }) => {
      const hasJson = options.some(({ flags }) => flags === '--json');
      expect([commandName, hasJson]).toEqual([commandName, reasons[commandName] === undefined]);
      if (hasJson) expect([...lines.map(([name]) => name), 'sandbox', 'dashboard']).toContain(commandName); // those two serve until a signal
    },
  );

  it('with a reason is a command', () => {
    const names = leaves(commands).map(([commandName]) => commandName);
    expect(Object.keys(reasons).filter((commandName) => !names.includes(commandName))).toEqual([]);
  });
});
