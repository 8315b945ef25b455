import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { summaryIn } from '../../support/command.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { type Done, runProgram, until } from '../../support/processes.ts';
import { openReceiver } from '../../support/receiver.ts';

const launcher = fileURLToPath(new URL('../../../expunge', import.meta.url));
const page = readFileSync(new URL('../../../src/help/examples.md', import.meta.url), 'utf8');

/** The lines of each section's code that are no comments. */
const sections = page
  .split(/^## /m)
  .slice(1)
  .map((text) => {
    const [, code = ''] = /^```sh\n([^`]*)^```/m.exec(text) ?? [];
    const lines = code.split('\n').filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('set '));
    return { title: text.slice(0, text.indexOf('\n')), lines };
  });

/** What shows that a line is at work which goes on until it is ended, and the code with which it ends then. */
const lasting: [line: RegExp, words: RegExp, code: number | null][] = [
  [/^expunge worker\b/, /ready/, 0],
  [/--watch$/, /./, null], // by a signal
];

/** The harness names the target by variables; here a file does. */
const unset = { EXPUNGE_BASE_URL: undefined, EXPUNGE_ACCOUNT: undefined };

/** The words of a line without variables and pipes, as a shell reads them. */
function wordsOf(line: string): string[] {
  return (line.match(/"[^"]*"|'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll(/^["']|["']$/g, ''));
}

/** A folder with a list, keys and the settings that the page assumes; each command is one of the page. */
async function openPlace(atEnd: AtEnd) {
  const script = (_: string, id: string) => (/^a-0002\d[05]$/.test(id) ? 'status-409' : null);
  const harness = await openHarness(atEnd, { objects: { annotations: 600, views: 4_000 }, faults: { script } });
  const { folder, target, env } = harness;
  const receiver = await openReceiver(atEnd);
  mkdirSync(join(folder, 'bin'));
  symlinkSync(launcher, join(folder, 'bin', 'expunge'));
  // What is old is another thing each time.
  harness.file(
    'bin/psql',
    '#!/bin/sh\necho >>asked; seq -f "v-%06g" $(($(wc -l <asked) * 1203 - 1000)) $(($(wc -l <asked) * 1203 + 202))\n',
  );
  chmodSync(join(folder, 'bin', 'psql'), 0o755);
  const sources = { expired: { command: ['psql', '-Atc', 'select id from old_views'] } };
  harness.file('expunge.config.json', JSON.stringify({ baseUrl: target.baseUrl, account: target.account, sources }));
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  harness.file('key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }));
  harness.file('public.pem', publicKey.export({ type: 'spki', format: 'pem' }));
  const { EXPUNGE_BASE_URL: _, EXPUNGE_ACCOUNT: __, ...others } = env;
  const surroundings = {
    ...others,
    SHELL: '/bin/bash',
    EXPUNGE_RETRY_DELAYS: '0s,0s,0s,0s,0s',
    PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
  };
  let run = '';
  let plan = '';
  /** The line as it works here: its run, plan, addresses and folders are those of this test. */
  const here = (line: string) =>
    line
      .replaceAll('m4tz', run)
      .replace('3f9a1c20', plan)
      .replace('https://api.example.com', target.baseUrl)
      .replace('https://ops.example.com', receiver.url)
      .replace('/srv/results', join(folder, 'results'))
      .replace('--http 9464', '--http 0');
  /** Does a line: in this process where it is a command alone, else in a shell. */
  const type = async (line: string, typed?: string): Promise<Done> => {
    const [, user, words] = /^(?:EXPUNGE_USER=(\S+) )?expunge ([^|]+)$/.exec(here(line)) ?? [];
    const variables = { ...surroundings, ...unset, EXPUNGE_USER: user };
    const options = { cwd: folder, env: surroundings };
    const done =
      words === undefined
        ? await runProgram('bash', ['-c', `set -o pipefail; ${here(line)}`], options)
        : await harness.expunge(wordsOf(words), { env: variables, ...(typed && { typed: ['Type ', `${typed}\r`] }) });
    plan = /Plan (\S+) waits/.exec(done.stderr)?.[1] ?? plan;
    return done;
  };
  /** Starts a line that goes on until it is ended, and ends it once it shows these words. */
  const begin = async (line: string, words: RegExp) => {
    const args = wordsOf(here(line).replace('expunge ', ''));
    const isProcess = /--workers|--watch/.test(line); // which reads no file of this folder
    const running = isProcess ? harness.spawn(args, surroundings) : harness.start(args, { ...surroundings, ...unset });
    await until(`it shows ${words}`, () => words.test(running.stdout + running.stderr));
    running.signal(line.includes('--watch') ? 'SIGINT' : 'SIGTERM');
    return { running, code: (await running.ended).code };
  };
  /** A new list of annotations. */
  const list = (...numbers: number[]) => {
    const rows = numbers.map((n) => `a-${String(n).padStart(6, '0')}\n`);
    harness.file('old.csv', `annotation_id\n${rows.join('')}`);
  };
  const submit = async (more: readonly string[]) => {
    const done = await harness.run(
      ['old.csv', '--resource', 'annotations', '--column', 'annotation_id', '--yes', '--json', ...more],
      {
        env: { ...surroundings, ...unset },
      },
    );
    run = summaryIn(done).run;
  };
  return { harness, type, begin, list, submit, surroundings };
}

type Place = Awaited<ReturnType<typeof openPlace>>;

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n);

/** What is there before a section. */
const before: Record<string, (place: Place) => unknown> = {
  'Before the first run': ({ list }) => list(...numbers(1, 64)),
  'Plan, and let a second person approve': ({ list }) => list(...numbers(101, 164)),
  'Retry what failed': ({ list, submit }) => {
    list(...numbers(201, 264), 900_001, 900_002); // which are not there
    return submit([]);
  },
  'Leave it to workers': ({ list }) => list(...numbers(301, 364)),
  'Control a run': async ({ harness, list, submit, surroundings }) => {
    list(...numbers(401, 600));
    await harness.worker([], { ...surroundings, ...unset });
    await submit(['--detach', '--rate', '5/s']);
  },
};

/** What is typed at a line that asks. */
const typed: [line: RegExp, text: string][] = [
  [/--limit 10$/, '10'],
  [/--max-deletes 6000/, '64'],
  [/expunge apply/, '64'],
  [/--probe-id/, 'yes'],
  [/^expunge retry m4tz$/, '12'],
  [/^expunge retry m4tz --only absent/, '2'],
  [/^expunge run rest.csv/, '12'],
];
/** How a line ends that does not end with 0. */
const codes: [line: RegExp, code: number][] = [
  [/^expunge retry|^expunge run rest/, 3], // they fail again
];

describe('the page of examples', () => {
  test('works line by line, in its order', async ({ onTestFinished }) => {
    const place = await openPlace(onTestFinished);
    for (const { title, lines } of sections) {
      await before[title]?.(place);
      for (const line of lines) {
        const [, words, end] = lasting.find(([found]) => found.test(line)) ?? [];
        if (words !== undefined) {
          const { running, code } = await place.begin(line, words);
          expect(code, `${line}\n${running.stdout}\n${running.stderr}`).toBe(end);
          continue;
        }
        const answer = typed.find(([words]) => words.test(line))?.[1];
        const done = await place.type(line, answer);
        const code = codes.find(([words]) => words.test(line))?.[1] ?? 0;
        expect(done.code, `${line}\n${done.stdout}\n${done.stderr}`).toBe(code);
      }
    }
  }, 900_000);
});
