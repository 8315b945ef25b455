import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readTopic } from '../../../src/help/topics.ts';
import { command, startCommand } from '../../support/command.ts';
import { until } from '../../support/processes.ts';
import { testRedisUrl } from '../../support/redis.ts';
import { forgetTarget } from '../../support/redis-keys.ts';
import { blocksOf, definitionsIn, patternOf, shownIn } from '../../support/resource-pages.ts';

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

/** A folder of the test, in which the lines of the page are done in this process. */
function openFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-resources-'));
  const before = process.cwd();
  process.chdir(folder);
  onTestFinished(() => {
    process.chdir(before);
    rmSync(folder, { recursive: true, force: true });
  });
  const env = { REDIS_URL: testRedisUrl(), EXPUNGE_USER: 'ana' };
  return {
    file: (name: string, text: string) => writeFileSync(join(folder, name), text),
    /** Does a line that calls expunge, with the output of another program as its input or without. */
    async run(line: string): Promise<{ code: number | null; printed: string }> {
      const [call = '', source] = line.split(' | ').reverse();
      const input = source === undefined ? '' : execFileSync('sh', ['-c', source]);
      const { code, stdout, stderr } = await command(call.replace(/^expunge /, '').split(' '), { env, input });
      return { code, printed: stderr + stdout };
    },
    /** Starts the sandbox on a free port, and returns that port. */
    async serve(line: string): Promise<string> {
      const args = line.replace('--port 8080', '--port 0').trim().split(' ').slice(1);
      const sandbox = startCommand(args, { env });
      onTestFinished(async () => {
        sandbox.signal('SIGTERM');
        await sandbox.ended;
      });
      return until('the sandbox listens', () => /sandbox API +http:\/\/127\.0\.0\.1:(\d+)/.exec(sandbox.stdout)?.[1]);
    },
  };
}

describe('the topic about resources', () => {
  test('has an example of each kind of success', () => {
    const successes = Object.values(definitionsIn(page)).map(({ success }) => success);
    expect(successes).toEqual([[204], [200], [202]]);
  });

  test.each(examples)('shows what happens: $title', async ({ files, serves, shown }) => {
    const here = openFolder();
    here.file('expunge.config.json', files.join(''));
    const port = await here.serve(serves.join(''));
    onTestFinished(() => forgetTarget(`http://localhost:${port}`));
    here.file('expunge.config.json', files.join('').replace(':8080', `:${port}`));
    let run = '';
    for (const { line, output } of shown) {
      const done = await here.run(line.replace('5ppa', run));
      expect(done.printed.replaceAll(`:${port}`, ':8080')).toMatch(patternOf(output));
      expect(done.code, done.printed).toBe(0);
      run = /^Run (\S+) completed/m.exec(done.printed)?.[1] ?? run;
    }
    expect(shown.length).toBeGreaterThan(0);
  });

  test.each(examples)('has names that the shell completes: $title', async ({ files }) => {
    const here = openFolder();
    here.file('expunge.config.json', files.join(''));
    const [name] = Object.keys(definitionsIn(`\`\`\`json\n${files.join('')}\`\`\`\n`));
    for (const line of ['run ids.txt --resource', 'explain'])
      expect((await here.run(`expunge complete ${line} `)).printed).toBe(`words\nannotations\t\nviews\t\n${name}\t\n`);
  });

  test('shows the refusal of a path, with its line', async () => {
    const { shown } = sections.find(({ title }) => title === 'Refused definitions')!;
    const [file] = examples.find(({ title }) => title.startsWith('200'))!.files;
    const here = openFolder();
    here.file('expunge.config.json', file!.replace('/v1/dashboards/{id}/', '/v1/dashboards?id={id}'));
    const done = await here.run(shown[0]!.line);
    expect(done).toMatchObject({ code: 2, printed: expect.stringMatching(patternOf(shown[0]!.output)) });
  });
});
