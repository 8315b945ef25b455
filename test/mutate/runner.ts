import { appendFileSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type RunnerTask, type RunnerTestCase, type RunnerTestFile, TestRunner } from 'vitest';
import { startTests } from 'vitest/internal/browser';

/** What the main program wants to be known: which mutants each test meets, or which of these mutants each test kills. */
export type Plan = {
  answers: string;
  /** The files that are changed. */
  sources: string[];
  met: Record<string, number[]> | null;
  loaded: Record<string, number[]>;
  /** By test: how many places it passes without a mutant, and how long it takes. */
  usual: Record<string, { steps: number; ms: number }>;
};

/** One line of the answers. `met` by a test or, with its file alone, while modules are loaded. */
export type Answer =
  | { met: number[]; by: string; steps: number; ms: number }
  | { begun: number; by: string }
  | { killed: number; by: string; how: 'killed' | 'timeout' }
  | { odd: string };

const plan = JSON.parse(readFileSync(process.env.MUTATE_PLAN!, 'utf8')) as Plan;
const { setTimeout: setRealTimeout, clearTimeout: clearRealTimeout } = globalThis; // tests replace them
const killed = new Set<number>();
let active = 0;
let steps = 0;
let maxSteps = 0; // a mutant that goes round for ever passes its own place or that of another one again and again
let met = new Set<number>();

Object.assign(globalThis, {
  $m(id: number): boolean {
    steps++;
    if (active === 0) met.add(id);
    else if (steps > maxSteps) throw new Error('the mutant goes round for ever');
    return active === id;
  },
});

function tell(answer: Answer): void {
  appendFileSync(plan.answers, `${JSON.stringify(answer)}\n`);
}

function nameOf(test: RunnerTestCase): string {
  return `${test.file.name} > ${test.fullTestName}`;
}

function activate(id: number, test: string): void {
  active = id;
  steps = 0;
  maxSteps = 100_000 + 20 * (plan.usual[test]?.steps ?? 100_000);
  if (id !== 0) tell({ begun: id, by: test });
}

/** Concurrent tests, too, run one after the other: only one mutant is active at a time. */
function oneByOne(task: RunnerTask): void {
  task.concurrent = false;
  if ('tasks' in task) for (const inside of task.tasks) oneByOne(inside);
}

/**
 * Runs each test as usual, or once more for each mutant that it met and that nobody has killed yet. Mutants of what is evaluated while modules
 * are loaded need a load of their own: then the file is run once more from the beginning.
 */
export default class MutantRunner extends TestRunner {
  mutants: number[] = [];
  isReloading = false;

  async onBeforeRunFiles(files: RunnerTestFile[]): Promise<void> {
    for (const file of files) oneByOne(file);
    if (files[0]!.result?.state === 'fail' && active === 0)
      tell({ odd: `${files[0]!.name}: ${files[0]!.result.errors?.[0]?.message}` });
    if (plan.met !== null) return;
    // A source that a test loads in its middle would look as if that test passed all of it.
    for (const source of plan.sources) await modulesOf(this).import(resolve(source));
    tell({ met: [...met], by: files[0]!.name, steps, ms: 0 });
    met = new Set();
    steps = 0;
  }

  override async onBeforeRunTask(test: RunnerTestCase): Promise<void> {
    await super.onBeforeRunTask(test);
    if (this.isReloading) {
      if (killed.has(active)) test.mode = 'skip';
      return;
    }
    const mine = plan.met?.[nameOf(test)] ?? [];
    this.mutants = mine.filter((id) => !killed.has(id));
    if (plan.met === null) return;
    // At the end once more without a mutant: what one has left behind must not look like the death of another.
    if (this.mutants.length === 0) test.mode = 'skip';
    else test.repeats = this.mutants.length;
  }

  override onBeforeTryTask(test: RunnerTestCase, options: { retry: number; repeats: number }): void {
    super.onBeforeTryTask(test, options as never);
    if (plan.met !== null && !this.isReloading) activate(this.mutants[options.repeats] ?? 0, nameOf(test));
  }

  /** A test that waits for what a mutant has prevented is ended long before its own time is over. */
  async runTask(test: RunnerTestCase): Promise<void> {
    const run = TestRunner.getTestFn(test) as () => unknown;
    if (active === 0) return void (await run());
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const ms = 500 + 10 * (plan.usual[nameOf(test)]?.ms ?? 200);
      timer = setRealTimeout(() => reject(new Error('timed out')), ms);
    });
    await Promise.race([run(), late]).finally(() => clearRealTimeout(timer));
  }

  override async onAfterRetryTask(test: RunnerTestCase, options: unknown): Promise<void> {
    await super.onAfterRetryTask(test as never, options as never);
    const isFailed = test.result?.state === 'fail';
    if (isFailed && active !== 0) this.kill(test);
    else if (isFailed) tell({ odd: `${nameOf(test)}: ${test.result!.errors?.[0]?.message}` });
    delete test.result?.errors;
    if (plan.met !== null && !this.isReloading) activate(0, '');
  }

  override onAfterRunTask(test: RunnerTestCase): void {
    super.onAfterRunTask(test);
    if (plan.met !== null) return;
    tell({ met: [...met], by: nameOf(test), steps, ms: test.result!.duration ?? 0 });
    met = new Set();
    steps = 0;
  }

  kill(test: RunnerTestCase): void {
    const message = test.result?.errors?.at(-1)?.message ?? '';
    killed.add(active);
    tell({ killed: active, by: nameOf(test), how: /timed out|for ever/.test(message) ? 'timeout' : 'killed' });
  }

  override async onAfterRunFiles(files: RunnerTestFile[]): Promise<void> {
    super.onAfterRunFiles(files);
    if (plan.met !== null) await this.#reload(files[0]!);
  }

  /** The file once more, with its modules loaded anew, for each mutant that plays its part while they are loaded. */
  async #reload(file: RunnerTestFile): Promise<void> {
    if ((plan.loaded[file.name] ?? []).length === 0) return;
    const quiet = Object.create(this) as MutantRunner & Record<string, unknown>;
    Object.assign(quiet, { onTaskUpdate() {}, onCollectStart() {}, onCollected() {}, onAfterRunFiles() {} });
    this.isReloading = true;
    for (const id of plan.loaded[file.name] ?? []) {
      if (killed.has(id)) continue;
      this.unload();
      activate(id, file.name);
      const [again] = await startTests([file.filepath], quiet);
      if (again?.result?.state === 'fail' && !killed.has(id)) {
        killed.add(id);
        tell({ killed: id, by: file.name, how: 'killed' });
      }
      activate(0, '');
    }
    this.unload();
    this.isReloading = false;
  }

  unload(): void {
    const { evaluatedModules } = modulesOf(this);
    for (const [path, module] of evaluatedModules.idToModuleMap) {
      if (/\/(src|test)\/(?!mutate)/.test(path) && !path.includes('node_modules'))
        evaluatedModules.invalidateModule(module);
    }
  }
}

type Modules = {
  import(path: string): Promise<unknown>;
  evaluatedModules: { idToModuleMap: Map<string, object>; invalidateModule(module: object): void };
};

function modulesOf(runner: TestRunner): Modules {
  return (runner as unknown as { moduleRunner: Modules }).moduleRunner;
}
