import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import type { Invocation } from '../../../src/commands/command.ts';
import { readCommandLine } from '../../../src/commands/read-command-line.ts';
import { verbs } from '../../../src/commands/verbs.ts';
import { loadConfig } from '../../../src/config.ts';

/** What makes a run or a schedule, and what looks whether it could: they may begin a private Redis. */
const beginning = ['run', 'worker', 'schedule add', 'check', 'quickstart'];
const withoutRedis = ['config show', 'sandbox', 'redis status', 'redis stop'];

const all = verbs.flatMap(({ name, subcommands = [], load }) => [
  ...(load === null ? [] : [name]),
  ...subcommands.map((command) => `${name} ${command.name}`),
]);
const needed: Record<string, string[]> = { rate: ['m4tz', '5/s'], priority: ['m4tz', 'high'] };
const withoutArguments = ['runs', 'status', 'stop-all', 'start-all', 'schedule list'];

test.each(all.filter((verb) => ![...beginning, ...withoutRedis].includes(verb)))(
  '%s begins no Redis in a folder that never had one, and says whose folder it looked in',
  async (verb) => {
    const folder = mkdtempSync(join(tmpdir(), 'expunge-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const stateDir = join(folder, '.expunge');
    const args = needed[verb] ?? (withoutArguments.includes(verb) ? [] : ['m4tz']);
    const flags = ['--state-dir', stateDir];
    const target = ['EXPUNGE_BASE_URL', 'http://localhost:1'] as const;
    const call = readCommandLine([...verb.split(' '), ...args, ...flags], '', () => {})!;
    const { config, sources } = loadConfig({
      flags: call.flags,
      env: { [target[0]]: target[1] },
      configFile: undefined,
    });
    const stream = () => new Writable({ write: (_chunk, _encoding, done) => done() }) as unknown as NodeJS.WriteStream;
    const invocation: Invocation = {
      ...{ verb: call.verb, args: call.args, options: call.options, config, sources },
      ...{ env: { PATH: '', EXPUNGE_TOKEN: 'token' }, stdin: Readable.from([]) as unknown as NodeJS.ReadStream },
      ...{ stdout: stream(), stderr: stream(), outputClosed: new AbortController().signal },
    };
    const { execute } = await call.command.load!();
    await expect(execute(invocation)).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringContaining(`${stateDir} has no Redis`),
      next: expect.stringMatching(/go to .* --state-dir, or set REDIS_URL/),
    });
    expect(existsSync(stateDir)).toBe(false);
  },
);
