import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { posix } from 'node:path';
import { type Mutant, withMutants } from './mutants.ts';
import type { Order } from './pass.ts';
import type { Answer, Plan } from './runner.ts';

/*
 * Mutation testing: `npm run mutate` for all of `everything`, `npm run mutate -- src/delete src/limiter/learning/ramp.ts` for folders and files. Changes
 * the sources in one place at a time and sees whether a test fails; those of one process only. Prints who survives and a score a folder, and
 * ends with 1 where one is below `minPercent`. What was found before is taken over where neither the source nor its tests have changed.
 */
const everything = [
  ...['src/delete', 'src/history', 'src/http', 'src/ledger', 'src/lookup', 'src/model', 'src/report'],
  // The limiter's pure part: what a rate, an outage or a permit means.
  ...[
    'announced-window',
    'blame',
    'closed',
    'control',
    'fair-scheduler',
    'learn-in-flight',
    'learn-rate',
    'learned-rate',
  ],
  ...['outage', 'permits', 'ramp', 'rate-rules', 'read-target', 'stop', 'throttles'],
].map((path) => (path.startsWith('src/') ? path : `src/limiter/${path}.ts`));

const minPercent = 85;
const silentMs = 30_000; // a worker that tells nothing for so long hangs
const maxReloads = 6; // test files that are loaded anew for a mutant that plays its part while modules are loaded; its own and the closest ones
const folder = 'coverage/mutate';
const work = `${folder}/${process.pid}`; // several may run at once

/** Tests that say nothing about a mutant, or say it too slowly. */
const leftOut = [
  'test/unit/tidy.test.ts', // about the text of the sources
  'test/integration/ledger/doubt.test.ts', // servers of its own
  'test/integration/ledger/many-runs.test.ts', // 10,000 of them
  'test/integration/limiter/target.test.ts', // of scripts, by targets in a time of their own
];

/** Slow tests, and those of whole commands, try the mutants of these sources only. */
const onlyOf: Record<string, string[]> = {
  'test/integration/api/search.test.ts': ['list-runs'],
  'test/integration/commands/join.test.ts': ['join-report'],
  'test/integration/ledger/halts.test.ts': ['halt-rules', 'ledger', 'thresholds'],
  'test/integration/history/history.test.ts': ['history'],
  'test/integration/ledger/list-runs.test.ts': ['list-runs'],
  'test/integration/report/run-files.test.ts': ['file-retention', 'report', 'run-files'],
  'test/integration/ledger/scripts.test.ts': ['ledger', 'tally'],
};

function mayTry(test: string, source: string): boolean {
  return onlyOf[test]?.includes(posix.basename(source, '.ts')) ?? true;
}

type Fate = 'killed' | 'timeout' | 'survived' | 'not covered';
type Found = Pick<Mutant, 'line' | 'from' | 'to'> & { fate: Fate; by: string };
type Killed = Extract<Answer, { killed: number }>;
type Cache = Record<string, { key: string; found: Found[] }>;

const imports = new Map<string, string[]>();

function importsOf(file: string): string[] {
  const known = imports.get(file);
  if (known !== undefined) return known;
  const names = [...readFileSync(file, 'utf8').matchAll(/(?:from|import\() ?'(\.[^']+)'/g)].map(([, name]) => name!);
  const found = names.map((name) => posix.join(posix.dirname(file), name)).filter((path) => existsSync(path));
  imports.set(file, found);
  return found;
}

/** All files that a file needs, and how many imports away they are. */
function distances(file: string): Map<string, number> {
  const found = new Map([[file, 0]]);
  for (const [at, far] of found) for (const next of importsOf(at)) if (!found.has(next)) found.set(next, far + 1);
  return found;
}

function sourcesIn(asked: readonly string[]): string[] {
  const found = asked.flatMap((path) => (path.endsWith('.ts') ? [path] : globSync(`${path}/**/*.ts`)));
  // Scripts are text that Redis runs: a mutant would be an empty string, which says nothing about them.
  return found
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => existsSync(path) && !path.endsWith('.lua.ts'))
    .sort();
}

function testsIn(folders: string): string[] {
  const found = globSync(`${folders}/**/*.test.ts`).map((path) => path.replaceAll('\\', '/'));
  return found.filter((test) => !leftOut.includes(test)).sort();
}

/** Runs tests over the mutants of a plan. One that makes the worker hang is ended, and counts as found. */
async function runPass(order: Order, plan: Omit<Plan, 'answers'>, tried: Set<number>): Promise<Answer[]> {
  const answers: Answer[] = [];
  const begun = new Set<string>();
  for (;;) {
    writeFileSync(`${work}/order.json`, JSON.stringify(order));
    writeFileSync(
      `${work}/plan.json`,
      JSON.stringify({ ...without(plan, tried, begun), answers: `${work}/answers.jsonl` }),
    );
    writeFileSync(`${work}/answers.jsonl`, '');
    const hangs = await spawnPass();
    const told = readFileSync(`${work}/answers.jsonl`, 'utf8').split('\n').filter(Boolean);
    const lines = told.map((line) => JSON.parse(line) as Answer);
    answers.push(...lines);
    if (!hangs) return answers;
    const last = lines.findLast((line) => 'begun' in line);
    if (last === undefined) throw new Error('the tests hang without any mutant');
    answers.push({ killed: last.begun, by: 'the worker hung', how: 'timeout' });
    for (const line of answers) if ('killed' in line) tried.add(line.killed);
    for (const line of lines) if ('begun' in line) begun.add(`${line.begun} ${line.by}`);
  }
}

/** What is left of a plan without the mutants that are dead, and those that were tried with a test already. */
function without(plan: Omit<Plan, 'answers'>, tried: Set<number>, begun: Set<string>): Omit<Plan, 'answers'> {
  const isLeft = (id: number, name: string) => !tried.has(id) && !begun.has(`${id} ${name}`);
  const left = (by: Record<string, number[]>) =>
    Object.fromEntries(Object.entries(by).map(([name, ids]) => [name, ids.filter((id) => isLeft(id, name))]));
  return { ...plan, met: plan.met && left(plan.met), loaded: left(plan.loaded) };
}

/** True if it had to be ended. */
async function spawnPass(): Promise<boolean> {
  const env = { ...process.env, MUTATE_PLAN: `${work}/plan.json` };
  const child = spawn(process.execPath, ['test/mutate/pass.ts', `${work}/order.json`], {
    env,
    detached: true,
    stdio: 'ignore',
  });
  let [size, since, hangs] = [0, Date.now(), false];
  const watch = setInterval(() => {
    const now = readFileSync(`${work}/answers.jsonl`).length;
    if (now !== size) [size, since] = [now, Date.now()];
    if (Date.now() - since < silentMs) return;
    hangs = true;
    process.kill(-child.pid!, 'SIGKILL');
  }, 1_000);
  await new Promise((resolve) => child.once('exit', resolve));
  clearInterval(watch);
  return hangs;
}

/** Tries all mutants of these sources with these tests. `killed` is added to. */
async function tryAll(
  sources: Order['sources'],
  mutants: Map<number, Mutant>,
  tests: string[],
  killed: Map<number, Killed>,
) {
  const order = { sources, tests, needsRedis: tests.some((test) => test.startsWith('test/integration/')) };
  const paths = sources.map(({ file }) => file);
  const seen = await runPass(order, { sources: paths, met: null, loaded: {}, usual: {} }, new Set());
  const ran = new Set(seen.flatMap((line) => ('met' in line ? [line.by] : [])));
  const silent = tests.filter((test) => !ran.has(test));
  if (silent.length > 0) throw new Error(`these tests did not run: ${silent.join(', ')}`);
  const met: Record<string, number[]> = {};
  const loaded: Record<string, number[]> = {};
  const usual: Plan['usual'] = {};
  const whileLoaded = new Set(seen.flatMap((line) => ('met' in line && !line.by.includes(' > ') ? line.met : [])));
  for (const line of seen) {
    if ('odd' in line) console.error(`fails without any mutant: ${line.odd}`);
    if (!('met' in line) || !line.by.includes(' > ')) continue;
    const test = line.by.split(' > ')[0]!;
    const mine = line.met.filter((id) => mayTry(test, mutants.get(id)!.file));
    met[line.by] = [...new Set([...(met[line.by] ?? []), ...mine])];
    usual[line.by] = { steps: line.steps, ms: line.ms };
  }
  const msOf = (test: string) =>
    seen.reduce((sum, line) => ('met' in line && line.by.startsWith(test) ? sum + line.ms : sum), 0);
  const quickFirst = tests.map((test) => ({ test, ms: msOf(test) })).sort((a, b) => a.ms - b.ms);
  const far = new Map(tests.map((test) => [test, distances(test)]));
  for (const id of whileLoaded) {
    const { file } = mutants.get(id)!;
    const near = tests.filter((test) => far.get(test)!.has(file) && mayTry(test, file));
    const own = file.replace(/^src\/(.*)\.ts$/, 'test/unit/$1.test.ts');
    const steps = (test: string) => (test === own ? 0 : far.get(test)!.get(file)!);
    near.sort((a, b) => steps(a) - steps(b));
    for (const test of near.slice(0, maxReloads)) loaded[test] = [...(loaded[test] ?? []), id];
  }
  const tried = new Set(killed.keys());
  const covered = new Set([...Object.values(met).flat(), ...whileLoaded]);
  for (const line of await runPass(
    { ...order, tests: quickFirst.map(({ test }) => test) },
    { sources: paths, met, loaded, usual },
    tried,
  )) {
    if ('killed' in line) killed.set(line.killed, line);
    if ('odd' in line) console.error(`fails after a mutant was tried: ${line.odd}`);
  }
  return covered;
}

async function main(asked: readonly string[]): Promise<void> {
  mkdirSync(work, { recursive: true });
  const cacheFile = `${folder}/found.json`;
  const readCache = (): Cache => (existsSync(cacheFile) ? JSON.parse(readFileSync(cacheFile, 'utf8')) : {});
  const before = readCache();
  const unit = testsIn('test/unit');
  const folders = 'test/integration/{delete,history,http,ledger,limiter,lookup,report}';
  const integration = [...new Set([...testsIn(folders), ...Object.keys(onlyOf)])].sort();
  const files = sourcesIn(asked);
  const using = new Map(
    files.map((file) => [
      file,
      [...unit, ...integration].filter((test) => mayTry(test, file) && distances(test).has(file)),
    ]),
  );
  const keyOf = (file: string) => {
    const all = new Set(using.get(file)!.flatMap((test) => [...distances(test).keys()]));
    const hash = createHash('sha256');
    for (const path of [file, ...[...all].sort()]) hash.update(path).update(readFileSync(path));
    return hash.digest('hex');
  };
  const due = files.filter((file) => before[file]?.key !== keyOf(file));
  const mutants = new Map<number, Mutant>();
  const sources = due.map((file) => {
    const firstId = mutants.size + 1;
    for (const mutant of withMutants(file, readFileSync(file, 'utf8'), firstId).mutants) mutants.set(mutant.id, mutant);
    return { file, firstId };
  });
  const killed = new Map<number, Killed>();
  const covered = new Set<number>();
  for (const tests of [unit, integration]) {
    const mine = tests.filter((test) => due.some((file) => using.get(file)!.includes(test)));
    if (mine.length === 0) continue;
    for (const id of await tryAll(sources, mutants, mine, killed)) covered.add(id);
  }
  const cache = readCache(); // again: another run may have written meanwhile
  for (const file of due) cache[file] = { key: keyOf(file), found: [] };
  for (const [id, { file, line, from, to }] of mutants) {
    const end = killed.get(id);
    const fate = end?.how ?? (covered.has(id) ? 'survived' : 'not covered');
    cache[file]!.found.push({ line, from, to, fate, by: end?.by ?? '' });
  }
  writeFileSync(cacheFile, JSON.stringify(cache));
  rmSync(work, { recursive: true });
  report(files, cache);
}

function report(files: readonly string[], cache: Cache): void {
  const score = (found: readonly Found[]) => {
    const dead = found.filter(({ fate }) => fate === 'killed' || fate === 'timeout').length;
    return { percent: found.length === 0 ? 100 : (100 * dead) / found.length, text: `${dead} of ${found.length}` };
  };
  for (const file of files) {
    for (const { line, from, to, fate } of cache[file]!.found) {
      if (fate === 'survived' || fate === 'not covered')
        console.log(`${file}:${line}  ${fate}  ${from.slice(0, 90)}  →  ${to.slice(0, 90)}`);
    }
  }
  const rows = [...new Set(files.map((file) => posix.dirname(file)))].flatMap((name) => [
    ...files.filter((file) => posix.dirname(file) === name),
    name,
  ]);
  for (const row of rows) {
    const found = files
      .filter((file) => file === row || posix.dirname(file) === row)
      .flatMap((file) => cache[file]!.found);
    const { percent, text } = score(found);
    console.log(`${percent.toFixed(1).padStart(5)} %  ${text.padEnd(14)}  ${row}`);
    if (!row.endsWith('.ts') && percent < minPercent) process.exitCode = 1;
  }
}

const asked = process.argv.slice(2);
await main(asked.length > 0 ? asked : everything);
