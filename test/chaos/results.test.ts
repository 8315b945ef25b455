import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { readUndelivered } from '../../src/ledger/results.ts';
import { resultFiles } from '../../src/report/result-files.ts';
import { type AtEnd, type Harness, openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { type Running, until, without } from '../support/processes.ts';
import { openReceiver, type ReceiverServer } from '../support/receiver.ts';
import { sized } from '../support/size.ts';

const names = Object.keys(resultFiles);
const sorted = names.toSorted();
const idsOfRun = 40;
const runsOfTest = sized(3, 20);
const runsOfKill = 3;

type Stage = { harness: Harness; runs: string[]; results: string; drafts: string };

/**
 * Two workers with --results, and runs that end while those workers are killed in turn: each time the one that is in the middle of a delivery.
 * `drafts`: the folder in which a set is written first.
 */
async function runAndKill(atEnd: AtEnd, destination: (folder: string) => Pick<Stage, 'results' | 'drafts'>) {
  const ids = makeIds('k', runsOfTest * idsOfRun);
  const harness = await openHarness(atEnd, { objects: annotations(ids) });
  const { results, drafts } = destination(harness.folder);
  const start = () => harness.spawnWorker(['--results', results], without('patience'));
  let workers: Running[] = await Promise.all([start(), start()]);
  for (let n = 0; n < runsOfTest; n++) {
    const list = harness.file(`list-${n}.txt`, `${ids.slice(n * idsOfRun, (n + 1) * idsOfRun).join('\n')}\n`);
    await harness.run([list, '--resource', 'annotations', '--detach', '--yes']);
    if ((n + 1) % runsOfKill !== 0) continue;
    // Into a folder that may be over before anybody sees it.
    const found = await until('a worker delivers', async () => {
      const delivering = workers.find(({ pid }) => isDelivering(drafts, pid));
      return delivering ?? ((await areDelivered(harness)) && workers[0]);
    });
    found.signal('SIGKILL');
    await found.ended;
    workers = [...workers.filter((worker) => worker !== found), await start()];
  }
  const runs = (await harness.runs()).map(({ id }) => id);
  return { harness, runs, results, drafts };
}

function isDelivering(drafts: string, pid: number): boolean {
  return existsSync(drafts) && readdirSync(drafts).some((name) => name.startsWith('.') && name.includes(`-${pid}-`));
}

async function areDelivered({ redis, target, runs }: Harness): Promise<boolean> {
  if ((await readUndelivered(redis, target.fp)).length > 0) return false;
  return (await runs()).every(({ state, resultsAt }) => state === 'completed' && resultsAt > 0);
}

/** Whether the files of a run's results hold all of it. */
function isComplete(run: string, outcomes: string, summary: string): boolean {
  const facts = JSON.parse(summary);
  const isSummary =
    facts.run === run && facts.state === 'completed' && facts.rows === idsOfRun && facts.pending === 0 && facts.adds_up;
  return isSummary && outcomes.trimEnd().split('\n').length === 1 + idsOfRun;
}

/** What a server does to those that send results to it, until it is well again. */
type Trouble = [what: string, begin: (receiver: ReceiverServer) => Promise<() => void | Promise<void>>];

const troubles: Trouble[] = [
  [
    'never answers for a summary',
    async (receiver) => {
      let getWell = () => {};
      const well = new Promise<void>((resolve) => {
        getWell = resolve;
      });
      receiver.answer = async ({ path }) => {
        if (path.endsWith('summary.json')) await well;
        return 200;
      };
      return getWell;
    },
  ],
  [
    'is slow',
    async (receiver) => {
      receiver.answer = () => sleep(300, 200);
      return () => {};
    },
  ],
  [
    'answers 5xx to two of three requests',
    async (receiver) => {
      let requests = 0;
      receiver.answer = () => [500, 503, 200][requests++ % 3]!;
      return () => {
        receiver.answer = () => 200;
      };
    },
  ],
  [
    'is away',
    async (receiver) => {
      await receiver.leave();
      return () => receiver.comeBack();
    },
  ],
];

describe.concurrent('while two workers are killed in turn', () => {
  /** @invariant one-result-set: A run that ends under a worker with `--results` has one complete set of result files, whichever process dies. */
  test('each run has one complete set in the folder', async ({ expect, onTestFinished }) => {
    const { harness, runs, results } = await runAndKill(onTestFinished, (folder) => {
      const results = join(folder, 'results');
      return { results, drafts: results };
    });
    await until('all results are delivered', () => areDelivered(harness));
    expect(runs).toHaveLength(runsOfTest);
    expect(readdirSync(results).sort()).toEqual(runs.toSorted());
    for (const run of runs) {
      expect(readdirSync(join(results, run)).sort()).toEqual(sorted);
      const [outcomes, summary] = ['outcomes.csv', 'summary.json'].map((name) =>
        readFileSync(join(results, run, name), 'utf8'),
      );
      expect(isComplete(run, outcomes!, summary!)).toBe(true);
    }
  });

  /** @invariant one-result-set */
  test.for(sized(troubles.slice(0, 1), troubles))(
    'each run has one complete set at the URL, whose server %s',
    async ([, begin], context) => {
      const { expect, onTestFinished } = context;
      const receiver = await openReceiver(onTestFinished);
      const end = await begin(receiver);
      const { harness, runs, drafts } = await runAndKill(onTestFinished, (folder) => ({
        results: receiver.url,
        drafts: join(folder, 'state', 'results'),
      }));
      await end();
      await until('all results are delivered', () => areDelivered(harness));
      const taken = receiver.received.filter(({ status }) => status === 200).map(({ path }) => path);
      const files = receiver.files();
      expect(runs).toHaveLength(runsOfTest);
      expect([...files.keys()].sort()).toEqual(runs.flatMap((run) => sorted.map((name) => `/${run}/${name}`)).sort());
      for (const run of runs) {
        const last = names.map((name) => taken.lastIndexOf(`/${run}/${name}`));
        expect(last).toEqual(last.toSorted((a, b) => a - b)); // the summary behind the files that it stands for
        expect(isComplete(run, files.get(`/${run}/outcomes.csv`)!, files.get(`/${run}/summary.json`)!)).toBe(true);
      }
      expect(readdirSync(drafts)).toEqual([]);
    },
  );
});
