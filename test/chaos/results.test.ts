import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { resultFiles } from '../../src/ledger/result-files.ts';
import { readUndelivered } from '../../src/ledger/results.ts';
import { startRun } from '../support/fleet.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { type Running, until } from '../support/processes.ts';
import { openReceiver } from '../support/receiver.ts';
import { sized } from '../support/size.ts';

const names = Object.keys(resultFiles).sort();
const idsOfRun = 40;

/** Submits runs for workers that are to be killed, and returns their ids. */
async function submitRuns(harness: Harness, count: number): Promise<string[]> {
  const ids = makeIds('k', count * idsOfRun);
  for (let n = 0; n < count; n++) await startRun(harness, ids.slice(n * idsOfRun, (n + 1) * idsOfRun), ['--detach']);
  return (await harness.runs()).map(({ id }) => id);
}

/** Kills the workers in turn, each in the middle of a delivery, and starts another in its place. */
async function killInTurn(harness: Harness, args: string[], isDelivering: () => boolean): Promise<Running[]> {
  let workers = [await harness.spawnWorker(args), await harness.spawnWorker(args)];
  for (let round = 0; round < sized(2, 6); round++) {
    await until('results are on their way', isDelivering);
    const [next, other] = workers as [Running, Running];
    next.signal('SIGKILL');
    await next.ended;
    workers = [other, await harness.spawnWorker(args)];
  }
  return workers;
}

async function allDelivered({ redis, target, runs }: Harness): Promise<void> {
  await until('the results of all runs are delivered', async () => {
    if ((await readUndelivered(redis, target.fp)).length > 0) return false;
    return (await runs()).every(({ state, resultsAt }) => state === 'completed' && resultsAt > 0);
  });
}

function expectComplete(outcomes: string, summary: string, run: string): void {
  expect(outcomes.trimEnd().split('\n')).toHaveLength(1 + idsOfRun);
  expect(JSON.parse(summary)).toMatchObject({ run, state: 'completed', rows: idsOfRun, pending: 0, adds_up: true });
}

function openStage(atEnd: AtEnd, runs: number): Promise<Harness> {
  return openHarness(atEnd, { objects: annotations(makeIds('k', runs * idsOfRun)) });
}

const runsOfTest = sized(6, 20);

test('each run has one complete set in the folder, though its workers are killed in turn', async ({
  onTestFinished,
}) => {
  const harness = await openStage(onTestFinished, runsOfTest);
  const folder = join(harness.folder, 'results');
  const runs = await submitRuns(harness, runsOfTest);
  const sets = () => readdirSync(folder, { withFileTypes: true }).map(({ name }) => name);
  let seen = 0;
  await killInTurn(harness, ['--results', folder], () => {
    const found = existsSync(folder) ? sets().length : 0;
    if (found <= seen) return false;
    seen = found;
    return true;
  });
  await allDelivered(harness);
  expect(sets().sort()).toEqual(runs.toSorted());
  for (const run of runs) {
    expect(readdirSync(join(folder, run)).sort()).toEqual(names);
    const [outcomes, summary] = ['outcomes.csv', 'summary.json'].map((name) =>
      readFileSync(join(folder, run, name), 'utf8'),
    );
    expectComplete(outcomes!, summary!, run);
  }
});

test('each run has one complete set at the URL, though its workers are killed while they send', async ({
  onTestFinished,
}) => {
  const harness = await openStage(onTestFinished, runsOfTest);
  const receiver = await openReceiver(onTestFinished);
  let holdsSummaries = true;
  receiver.answer = async ({ path }) => {
    if (path.endsWith('summary.json')) await until('the test lets it pass', () => !holdsSummaries);
    return 200;
  };
  const runs = await submitRuns(harness, runsOfTest);
  let killedAt = '';
  await killInTurn(harness, ['--results', receiver.url], () => {
    const path = [...receiver.open].find((open) => open !== killedAt);
    if (path === undefined) return false;
    killedAt = path;
    return true;
  });
  holdsSummaries = false;
  await allDelivered(harness);
  const files = receiver.files();
  expect([...files.keys()].sort()).toEqual(runs.flatMap((run) => names.map((name) => `/${run}/${name}`)).sort());
  for (const run of runs) expectComplete(files.get(`/${run}/outcomes.csv`)!, files.get(`/${run}/summary.json`)!, run);
});
