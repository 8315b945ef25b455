import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { summaryIn } from '../support/command.ts';
import { type Harness, openHarness } from '../support/harness.ts';
import { makeIds, annotations as objectsOf } from '../support/ids.ts';
import { bin, runProgram } from '../support/processes.ts';

// What only a process of its own can show: its Node, its streams, its terminal, its environment.

const ids = makeIds('c', 100);
let harness: Harness;

beforeAll(async () => {
  harness = await openHarness(null, { objects: [...objectsOf(ids), { resource: 'views', id: 'v-000001' }] });
});
afterAll(() => harness.close());

const node = `"${process.execPath}" "${bin}"`;
const shell = (line: string) => runProgram('sh', ['-c', line], { cwd: harness.folder, env: harness.env });
const annotations = ['--resource', 'annotations', '--yes', '--json'];

describe('the version guard', () => {
  const pretend = (version: string) =>
    `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`;
  const on = (version: string) => runProgram(process.execPath, ['--import', pretend(version), bin, '--version']);

  it.each(['20.20.2', '22.18.0'])('refuses Node %s in words', async (version) => {
    const { code, stdout, stderr } = await on(version);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(
      new RegExp(`^error: expunge needs Node 22.19 or newer, this is Node ${version}\n  .*[.]/expunge.*\n$`),
    );
  });

  it('lets Node 22.19.0 pass', async () => {
    expect(await on('22.19.0')).toMatchObject({ code: 0, stderr: '' });
  });
});

test('an export that failed before it wrote a row is no success', async () => {
  const { code, stderr } = await shell(`false | ${node} run - ${annotations.join(' ')}`);
  expect([code, stderr]).toEqual([2, expect.stringContaining('(stdin): the list is empty: 0 rows; nothing was sent')]);
});

test('a reader that leaves ends no run, and is no error', async () => {
  const some = ids.slice(0, 50);
  harness.file('many.csv', `id\n${some.join('\n')}\n`);
  const words = `${node} run many.csv ${annotations.join(' ')}`;
  const { stdout, stderr } = await shell(`{ ${words}; echo "exit $?" >&2; } | true`);
  expect(stdout).toBe('');
  expect(stderr).toMatch(/completed: 50 ids[\s\S]*exit 0\n$/);
  expect(stderr).not.toMatch(/error|EPIPE/);
  expect(some.some((id) => harness.sandbox.exists('annotations', id))).toBe(false);
});

describe('output that cannot be written', () => {
  it.skipIf(!existsSync('/dev/full'))('is a mistake, unlike a reader that left', async () => {
    const { code, stderr } = await shell(`${node} config show > /dev/full`);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: the output is incomplete: no space left on the disk\n {2}make room/);
  });

  it('to a file that stdout leads to, because only a part of it has room, is no success: exit 1', async () => {
    harness.file('forty.csv', `id\n${ids.slice(50, 90).join('\n')}\n`);
    const { run } = summaryIn(await harness.run(['forty.csv', ...annotations]));
    // The one write of this report is cut short after 1 KiB, and the stream of Node calls that a success.
    const { code, stderr } = await shell(`ulimit -f 2; exec ${node} report ${run} > part.csv`);
    expect(stderr).toMatch(/error: the report could not be written to stdout, .*: the file is larger than allowed;/);
    expect(code).toBe(1);
  });
});

test('proxies of the environment are left alone', async () => {
  harness.file('unproxied.csv', `id\n${ids[90]}\n`);
  const proxy = 'http://127.0.0.1:1';
  const more = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, http_proxy: proxy, ALL_PROXY: proxy };
  const env = { ...harness.env, ...more, NODE_USE_ENV_PROXY: '1' };
  const args = ['run', 'unproxied.csv', ...annotations];
  const ended = await runProgram(process.execPath, [bin, ...args], { cwd: harness.folder, env });
  expect(summaryIn(ended)).toMatchObject({ deleted: 1, exit: 0 });
});

describe.skipIf(!existsSync('/usr/bin/script'))('on a terminal', () => {
  it('the count is asked for when stdin holds the ids, which stay unread, and a panel follows the run', async () => {
    const line = `printf '%s\\n' v-000001 | ${node} run - --resource views`;
    const { code, stdout } = await runProgram('script', ['-qec', `stty cols 100 rows 30; ${line}`, '/dev/null'], {
      cwd: harness.folder,
      env: { ...harness.env, SHELL: '/bin/sh' },
      typed: ['Type 1 to delete 1 view', '1\r'],
    });
    expect(stdout).toMatch(/1 row → .*1 view.* to delete[\s\S]*100 %[\s\S]*completed: 1 id/);
    expect([code, harness.sandbox.exists('views', 'v-000001')]).toEqual([0, false]);
  });
});
