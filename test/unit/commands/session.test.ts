import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { commands } from '../../../src/commands/line/commands.ts';
import { invoke } from '../../support/command.ts';

/** What makes a run or a schedule, looks whether it could, or shows where to begin: they may begin a private Redis. */
const beginning = ['run', 'plan', 'worker', 'dashboard', 'schedule add', 'check', 'quickstart'];
const withoutRedis = ['alerts', 'completion', 'config show', 'help', 'sandbox', 'redis status', 'redis stop'];

const all = commands.flatMap((command) => [
  ...(command.load === null ? [] : [[command.name, command] as const]),
  ...(command.subcommands ?? []).map((sub) => [`${command.name} ${sub.name}`, sub] as const),
]);
const needed: Record<string, string> = {
  '<rate>': '5/s',
  '<rate|none>': '5/s',
  '<limit|none>': '5/day',
  '<time|none>': '10min',
  '<high|normal|low>': 'high',
  '<annotations|views>': 'views',
};
/** Without their argument they need --all. */
const oneOrAll = ['resume', 'schedule resume'];
const argumentsOf = (names = '') =>
  names.split(' ').flatMap((name) => (name[0] === '<' ? [needed[name] ?? 'm4tz'] : []));

test.each(all.filter(([commandName]) => ![...beginning, ...withoutRedis].includes(commandName)))(
  '%s begins no Redis in a folder that never had one, and says whose folder it looked in',
  async (commandName, command) => {
    const folder = mkdtempSync(join(tmpdir(), 'expunge-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const stateDir = join(folder, '.expunge');
    const args = oneOrAll.includes(commandName) ? ['m4tz'] : argumentsOf(command.arguments);
    const env = {
      PATH: '',
      EXPUNGE_TOKEN: 'token',
      EXPUNGE_BASE_URL: 'http://localhost:1',
      EXPUNGE_STATE_DIR: stateDir,
    };
    await expect(invoke([...commandName.split(' '), ...args], env).ended).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining(`${stateDir} has no Redis`),
      next: expect.stringMatching(/go to .* --state-dir, or set REDIS_URL/),
    });
    expect(existsSync(stateDir)).toBe(false);
  },
);
