import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { whoAmI } from '../../../src/commands/session.ts';
import { openScene, type Scene, type SceneName } from '../../support/scenes.ts';

// What commands that only read say of a run, by the state that it is in.

/** A command, and its exit code and lines that it writes, among others. RUN is the id of the run, URL its base URL, and TIME any time. */
type Says = Record<string, readonly string[]>;

const noneDeleted = (state: string) => ({
  'verify RUN --sample 1 --yes': [
    'exit 2',
    `error: run RUN is ${state} and has no deleted id; nothing was sent`,
    'see the outcomes of its ids: expunge status RUN',
  ],
});
const notEnded = (state: string) => ({
  'retry RUN --dry-run': ['exit 2', `error: run RUN is ${state}; only a run that has ended can be retried`],
});
const ended = (command: string) => ({
  [command]: ['Run RUN has completed.', 'What happened to each row: expunge report RUN'],
});

const table: Partial<Record<SceneName, Says>> = {
  completed: {
    'status RUN': [
      'deleted 1 · absent 1 · gone_unconfirmed 1 · failed 1 · unknown 1',
      'Completed.',
      'retry the others: expunge retry RUN',
      'labels: ticket=OPS-77',
      'submitted by ana, because: old boards',
    ],
    'status RUN --audit': ['TIME  submit  ana  old boards', 'TIME  start  ana'],
    'runs --all': ['RUN  completed, exit 3  8  0  HOST  list.csv'],
    'report RUN': [
      'list.csv,2,annotations,a-000000,deleted,204,1,TIME,http_204,',
      'list.csv,3,annotations,gone,absent,404,1,TIME,http_404,"[REQUEST] {""error"":""not_found""}"',
      'list.csv,4,annotations,a-000000,duplicate,,0,,duplicate,first at list.csv:2',
      'list.csv,5,annotations,a/b,rejected,,0,,unsafe_character,',
      'list.csv,6,annotations,kept,protected,,0,,protected,',
      'list.csv,7,annotations,once-executed,gone_unconfirmed,404,2,TIME,http_404,"[REQUEST] {""error"":""not_found""}"',
      'list.csv,8,annotations,forbidden,failed,403,1,TIME,http_403,"[REQUEST] {""error"":""sandbox_403""}"',
      'list.csv,9,annotations,page,unknown,200,1,TIME,http_200,<!doctype html><title>Sign in</title><p>Please sign in to continue.',
    ],
    'report RUN --output report.csv': ['8 rows in report.csv'],
    'explain annotations a-000000': [
      'Run RUN · completed · list.csv:2',
      'deleted · http_204 · 1 attempt · TIME',
      'The API confirmed the delete with 204.',
      'Also at list.csv:4 duplicate',
    ],
    'explain annotations once-executed': [
      'gone_unconfirmed · http_404 · 2 attempts · TIME',
      'It answered: [REQUEST] {"error":"not_found"}',
    ],
    'explain views a-000000': [
      'exit 2',
      'error: no run has views "a-000000" on URL as account scene-completed (1 run searched)',
    ],
    'explain annotations a-000000 --account other': [
      'error: no run has annotations "a-000000" on URL as account other (0 runs searched)',
    ],
    'retry RUN --dry-run': [
      'Retries  1 failed, 1 unknown from run RUN of list.csv',
      'Ids  forbidden, page',
      'Labels  ticket=OPS-77',
      'Dry run: nothing was sent.',
    ],
    'report RUN --format html --only failed': ['exit 2', 'error: --only chooses rows; a page shows the whole run'],
    ...ended('resume RUN'),
    ...ended('cancel RUN --yes'),
  },
  clean: {
    'status RUN --watch': ['exit 0', 'Completed.', 'submitted by ME'],
    'retry RUN --dry-run': [
      'Run RUN has nothing to retry: no id is failed, unknown or not_attempted. Nothing is sent.',
    ],
  },
  retried: {
    'status RUN': ['retried by run OTHER', 'TIME  retry OTHER  ME'],
    'runs --all': ['OTHER  completed, exit 3  2  0  HOST  retry of RUN'],
    'report RUN --output report.csv': ['Run RUN: retried by run OTHER'],
    'retry RUN --dry-run': ['some may be settled: OTHER retried ids of that run before'],
    // The newest first.
    'explain annotations forbidden': [
      'Run OTHER · completed · list.csv:8',
      'failed · http_403 · 1 attempt · TIME',
      'The API refused it: the last answer was 403. It presumably still exists.',
      'It answered: [REQUEST] {"error":"sandbox_403"}',
      'Retry of run RUN',
      'Run RUN · completed · list.csv:8',
    ],
  },
  canary: {
    status: ['See what was answered: expunge status RUN'],
    ...noneDeleted('halted'),
    ...notEnded('halted'),
  },
  maxDeletes: {
    'status RUN': [
      'TIME  halt max_deletes  guard  3 ids have an outcome, as many as --max-deletes allows; 3 were not sent',
    ],
    'status RUN --watch': [
      'exit 4',
      'Halted: 3 ids have an outcome, as many as --max-deletes allows; 3 were not sent. Once its cause is gone, resume: expunge resume RUN',
    ],
  },
  interrupted: {
    status: ['Resume with: cd FOLDER && expunge run FOLDER/list.txt --resource annotations --yes --window WINDOW'],
    'verify RUN --sample 1 --yes': ['exit 4', 'error: nothing was sent. The run may send only WINDOW'],
    'report RUN --output report.csv': ['6 rows in report.csv, 6 of them pending. Paused by ME: interrupted by SIGTERM'],
  },
  waiting: {
    status: [
      'Run RUN of list.csv, by ana: 6 of 6 ids left. No worker of this target is alive.',
      'Start one: expunge worker --base-url URL --account scene-waiting',
    ],
    'explain annotations a-000000': ['Run RUN · running · list.csv:2', 'pending', 'It waits for its first attempt.'],
    'report RUN': ['list.csv,2,annotations,a-000000,pending,,0,,,'],
    ...noneDeleted('running'),
    ...notEnded('running'),
  },
  paused: {
    status: [
      'Run RUN of list.csv, by ana: 6 of 6 ids left. Paused by ana: which list?, since TIME.',
      'Resume with: expunge resume RUN',
    ],
    'status RUN --watch': ['exit 0', 'Paused by ana: which list? Resume with: expunge resume RUN'],
    'explain annotations a-000000': [
      'Nothing is sent while the run is paused, until the command resume continues it. It waits for its first attempt.',
    ],
    ...noneDeleted('paused'),
    ...notEnded('paused'),
  },
  pausedByTwo: {
    'status RUN': ['TIME  pause  ana  which list?', 'TIME  pause  bob  release window'],
  },
  cancelled: {
    'status RUN': ['retry the others: expunge retry RUN', 'TIME  cancel  ME  a wrong list'],
    'explain annotations a-000000': [
      'not_attempted · run_cancelled · TIME',
      'The run was cancelled before any attempt: it was never sent.',
    ],
    ...noneDeleted('cancelled'),
  },
  stopped: {
    'status RUN': ['then: No worker of this target is alive', 'TIME  stop-all  ana  they call us'],
    status: [
      'Stopped for all runs of this target by ana: they call us. Resume with: expunge start-all --base-url URL --account scene-stopped',
      'Run RUN of second.csv, by ana: 3 of 3 ids left. Held: stop.',
      'Run OTHER of list.csv, by ana: 6 of 6 ids left. Paused by bob: which list?, since TIME.',
      'Resume with: expunge resume OTHER',
      'TIME  stop-all  ana  they call us',
    ],
  },
  deadCommand: {
    'status RUN': ['or detach it: expunge resume RUN --detach'],
  },
  // On a machine without the configuration file.
  configured: {
    'status RUN': ['200 says deleted for dashboards, as the configuration file defines'],
    'explain dashboards d-1': ['The API confirmed the delete with 200.'],
    'explain dashboards d-2': [
      'error: no run has dashboards "d-2" on URL as account scene-configured (1 run searched)',
    ],
    'explain annotation d-1': [
      'exit 2',
      'error: "annotation" is not one of annotations, views. Did you mean annotations?',
    ],
  },
};

const rows = Object.entries(table).flatMap(([scene, says]) =>
  Object.entries(says).map(([line, lines]) => [scene as SceneName, line, lines] as const),
);

test.each(rows)('%s: expunge %s', async (name, line, lines) => {
  const scene = await openScene(onTestFinished, name);
  const { code, stdout, stderr } = await does(scene, line);
  const said = [`exit ${code}`, ...asWritten(scene, stdout + stderr)];
  expect(
    lines.filter((each) => !said.includes(each)),
    said.join('\n'),
  ).toEqual([]);
});

test('a run is the same in JSON: its summary, its actions, its target, and where an id is', async () => {
  const json = async (name: SceneName, line: string) => {
    const { stdout } = await does(await openScene(onTestFinished, name), line);
    return stdout
      .trimEnd()
      .split('\n')
      .map((each) => JSON.parse(each));
  };
  const counts = { deleted: 1, absent: 1, gone_unconfirmed: 1, failed: 1, unknown: 1, rejected: 1, duplicate: 1 };
  expect(await json('completed', 'status RUN --json')).toMatchObject([{ state: 'completed', ...counts, exit: 3 }]);
  expect(await json('completed', 'status RUN --audit --json')).toMatchObject([
    { type: 'audit', action: 'submit', who: 'ana', by: 'operator', reason: 'old boards' },
    { type: 'audit', action: 'start' },
    { type: 'summary' },
  ]);
  expect(await json('stopped', 'status --json')).toMatchObject([
    {
      standing: { why: 'stop' },
      stop: { who: 'ana', reason: 'they call us' },
      runs: [
        { state: 'running', pending: 3, standing: { why: 'stop', also: ['no_worker'] } },
        { state: 'paused', pending: 6, standing: { why: 'paused', by: 'bob' } },
      ],
      has_more_runs: false,
    },
  ]);
  expect(await json('cancelled', 'status --json')).toMatchObject([{ runs: [] }]);
  expect(await json('completed', 'explain annotations a-000000 --json')).toMatchObject([
    { v: 1, type: 'appearance', line: 2, outcome: 'deleted', status: 204, attempts: 1, open: null },
    { line: 4, outcome: 'duplicate' },
  ]);
  expect(await json('waiting', 'explain annotations a-000000 --json')).toMatchObject([
    { state: 'running', outcome: 'pending', open: { in_flight: false } },
  ]);
});

test('the actions on a run that ends in its own process are a file in its folder', async () => {
  const { run, stateDir } = await openScene(onTestFinished, 'completed');
  const file = readFileSync(join(stateDir, 'runs', run.id, 'audit.ndjson'), 'utf8');
  expect(
    file
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toMatchObject([
    { action: 'submit', who: 'ana', reason: 'old boards', at: expect.stringMatching(/^20\d\d-.*Z$/) },
    { action: 'start', who: 'ana', by: 'operator' },
  ]);
});

/** Words in capitals stand for what the line cannot hold. */
function does({ run, expunge }: Scene, line: string) {
  return expunge(line.split(' ').map((word) => (word === 'RUN' ? run.id : word)));
}

/** The lines as the table has them: without what differs each time, and without the width of columns. */
function asWritten({ run }: Scene, text: string): string[] {
  return text
    .replaceAll(run.id, 'RUN')
    .replaceAll(run.baseUrl, 'URL')
    .replaceAll(new URL(run.baseUrl).host, 'HOST')
    .replaceAll(whoAmI({}), 'ME')
    .replaceAll(/\d{8}-\d{4}-\w{4}/g, 'OTHER')
    .replaceAll(/\/\S*expunge-test-\w+/g, 'FOLDER')
    .replaceAll(/\[[\da-f-]{36}\]/g, '[REQUEST]')
    .replaceAll(/\d{4}-\d\d-\d\d[T ][\d:]{8}(Z| UTC)|\b\d\d:\d\d:\d\d\b/g, 'TIME')
    .replaceAll(/\b\d\d:00-\d\d:00\b/g, 'WINDOW')
    .split('\n')
    .map((line) => line.trim().replaceAll(/ {2,}/g, '  '));
}
