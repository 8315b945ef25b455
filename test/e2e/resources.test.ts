import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readTopic } from '../../src/help/topics.ts';
import { type Done, runProgram, startProgram, until } from '../support/processes.ts';
import { openPatientRedis, testRedisUrl } from '../support/redis.ts';
import { forgetTarget } from '../support/redis-keys.ts';
import { blocksOf, definitionsIn, patternOf, shownIn } from '../support/resource-pages.ts';

const launcher = fileURLToPath(new URL('../../expunge', import.meta.url));
const page = readTopic('resources');

const sections = page
  .split(/^## /m)
  .slice(1)
  .map((text) => ({
    title: text.slice(0, text.indexOf('\n')),
    files: blocksOf(text, 'json'),
    serves: blocksOf(text, 'sh'),
    shown: blocksOf(text, 'console').flatMap(shownIn),
  }));
const examples = sections.filter(({ files }) => files.length > 0);

/** A shell in a folder of its own, in which `expunge` is on the path. */
function openShell() {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-resources-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'bin'));
  symlinkSync(launcher, join(folder, 'bin', 'expunge'));
  const env = {
    PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
    REDIS_URL: testRedisUrl(),
    EXPUNGE_USER: 'ana@laptop',
  };
  return {
    file: (name: string, text: string) => writeFileSync(join(folder, name), text),
    run: (line: string): Promise<Done> =>
      runProgram('bash', ['-c', `set -o pipefail; { ${line}; } 2>&1`], { cwd: folder, env }),
    /** Starts the sandbox on a free port, and returns that port. */
    async serve(line: string): Promise<string> {
      const [program = '', ...args] = line.replace('--port 8080', '--port 0').trim().split(' ');
      const sandbox = startProgram(join(folder, 'bin', program), args, env, folder);
      onTestFinished(async () => {
        sandbox.signal('SIGTERM');
        await sandbox.ended;
      });
      return until('the sandbox listens', () => /sandbox API +http:\/\/127\.0\.0\.1:(\d+)/.exec(sandbox.stdout)?.[1]);
    },
  };
}

async function forgetAtEnd(baseUrl: string): Promise<void> {
  const redis = await openPatientRedis();
  onTestFinished(async () => {
    await forgetTarget(baseUrl, redis as Redis);
    redis.disconnect();
  });
}

describe('the topic about resources', () => {
  test('has an example of each kind of success', () => {
    const successes = Object.values(definitionsIn(page)).map(({ success }) => success);
    expect(successes).toEqual([[204], [200], [202]]);
  });

  test.each(examples)('shows what happens: $title', async ({ files, serves, shown }) => {
    const shell = openShell();
    shell.file('expunge.config.json', files.join(''));
    const port = await shell.serve(serves.join(''));
    await forgetAtEnd(`http://localhost:${port}`);
    shell.file('expunge.config.json', files.join('').replace(':8080', `:${port}`));
    let run = '';
    for (const { line, output } of shown) {
      const done = await shell.run(line.replace('5ppa', run));
      expect(done.stdout.replaceAll(`:${port}`, ':8080')).toMatch(patternOf(output));
      expect(done.code, done.stdout).toBe(0);
      run = /^Run (\S+) completed/m.exec(done.stdout)?.[1] ?? run;
    }
    expect(shown.length).toBeGreaterThan(0);
  });

  test.each(examples)('has names that the shell completes: $title', async ({ files }) => {
    const shell = openShell();
    shell.file('expunge.config.json', files.join(''));
    const [name] = Object.keys(definitionsIn(`\`\`\`json\n${files.join('')}\`\`\`\n`));
    for (const line of ['run ids.txt --resource', 'explain'])
      expect((await shell.run(`expunge complete ${line} ''`)).stdout).toBe(
        `words\nannotations\t\nviews\t\n${name}\t\n`,
      );
  });

  test('shows the refusal of a path, with its line', async () => {
    const { shown } = sections.find(({ title }) => title === 'Refused definitions')!;
    const [file] = examples.find(({ title }) => title.startsWith('200'))!.files;
    const shell = openShell();
    shell.file('expunge.config.json', file!.replace('/v1/dashboards/{id}/', '/v1/dashboards?id={id}'));
    const done = await shell.run(shown[0]!.line);
    expect(done).toMatchObject({ code: 2, stdout: expect.stringMatching(patternOf(shown[0]!.output)) });
  });
});
