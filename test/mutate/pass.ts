import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { BaseSequencer, startVitest, type TestSpecification } from 'vitest/node';
import { withMutants } from './mutants.ts';

/** One run of Vitest over sources that hold their mutants: `node test/mutate/pass.ts ORDER`, which mutate.ts starts and watches. */
export type Order = { sources: { file: string; firstId: number }[]; tests: string[]; needsRedis: boolean };

const order = JSON.parse(readFileSync(process.argv[2]!, 'utf8')) as Order;
const root = process.cwd();
const firstIds = new Map(order.sources.map(({ file, firstId }) => [file, firstId]));

Object.assign(globalThis, { $m: () => false }); // the start of Redis for the tests uses sources, too

/** The order that mutate.ts wants, and not what Vitest makes of earlier runs. */
class GivenOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => order.tests.indexOf(relative(root, moduleId));
    return files.sort((a, b) => place(a) - place(b));
  }
}

const plugin = {
  name: 'mutants',
  enforce: 'pre' as const,
  load(id: string) {
    const file = relative(root, id.split('?')[0]!).replaceAll('\\', '/');
    const firstId = firstIds.get(file);
    return firstId === undefined ? null : withMutants(file, readFileSync(`${root}/${file}`, 'utf8'), firstId).code;
  },
};

const vitest = await startVitest(
  'test',
  [],
  {
    config: false,
    fsModuleCache: false,
    watch: false,
    root,
    include: order.tests,
    runner: 'test/mutate/runner.ts',
    reporters: [{}],
    sequence: { sequencer: GivenOrder },
    isolate: false,
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 0,
    hookTimeout: 60_000,
    dangerouslyIgnoreUnhandledErrors: true,
    globalSetup: order.needsRedis ? ['test/support/global-setup.ts'] : [],
  },
  { plugins: [plugin] },
);
await vitest.close();
process.exit(0); // a mutant may have left something behind that goes on
