import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { neededCommands } from '../../../src/redis/rights.ts';

const needed = neededCommands.flatMap((row) => Object.keys(row));
const src = fileURLToPath(new URL('../../../src', import.meta.url));
const bullmq = join(dirname(fileURLToPath(import.meta.resolve('bullmq'))), 'scripts');

/** The scripts of BullMQ behind what src/queue calls. */
const used = [
  ...['addStandardJob', 'addDelayedJob', 'getState', 'getStateV2', 'getCounts', 'removeJob', 'obliterate', 'pause'],
  ...['moveToActive', 'moveToFinished', 'moveToDelayed', 'moveStalledJobsToWait', 'extendLock', 'extendLocks'],
  'retryJob',
];

/** Commands that a login may lack, or that the private Redis alone is sent, whose login may do all. */
const dispensable = new Set(['client', 'cluster', 'config', 'shutdown']);

/** The commands that a text of Lua calls. */
function calledIn(text: string): string[] {
  return [...text.matchAll(/\b(?:rcall|redis\.p?call)\(\s*(['"])(\w+)\1/g)].map(([, , name]) => name!.toLowerCase());
}

function lacking(commands: string[]): string[] {
  return [...new Set(commands)].filter((command) => !needed.includes(command));
}

describe('the rights of the login', () => {
  it('cover every command of our scripts', () => {
    const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    const commands = files.flatMap((name) => calledIn(readFileSync(join(src, name), 'utf8')));
    expect(commands.length).toBeGreaterThan(50);
    expect(lacking(commands)).toEqual([]);
  });

  it('cover every command that is sent without a script', () => {
    const known = new Set(
      new Redis({ lazyConnect: true }).getBuiltinCommands().filter((name) => !dispensable.has(name)),
    );
    const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    const texts = files.map((name) => readFileSync(join(src, name), 'utf8'));
    const called = texts.flatMap((text) =>
      [...text.matchAll(/\bredis\.(\w+)\(/g)].map(([, name]) => name!.toLowerCase()),
    );
    const commands = called.filter((name) => known.has(name));
    expect(new Set(commands).size).toBeGreaterThan(20);
    expect(lacking(commands)).toEqual([]);
  });

  it.each(used)('cover every command of the script %s of BullMQ', (script) => {
    const file = readdirSync(bullmq).find((name) => new RegExp(`^${script}-\\d+\\.js$`).test(name));
    const commands = calledIn(readFileSync(join(bullmq, file ?? ''), 'utf8'));
    expect(commands.length).toBeGreaterThan(0);
    expect(lacking(commands)).toEqual([]);
  });

  it('name no command twice, and none that could touch what is not ours', () => {
    expect(new Set(needed).size).toBe(needed.length);
    const dangerous = [
      'keys',
      'scan',
      'flushall',
      'flushdb',
      'config',
      'script',
      'function',
      'acl',
      'shutdown',
      'swapdb',
    ];
    expect(needed.filter((command) => dangerous.includes(command))).toEqual([]);
  });
});
