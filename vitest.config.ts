import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take long come first, or the last of them runs alone at the end: a clean clone knows no durations of earlier runs. */
class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const takesLong = ({ moduleId }: TestSpecification) =>
      /limiter.zoo|schedule.occurrences|commands.(plans|rehearse|run|bad-input|verify|grace)\.|every-standing|action-walk|kill-storm|browser.dashboard|redis-later/.test(
        moduleId,
      );
    const sorted = await super.sort(files);
    return [...sorted.filter(takesLong), ...sorted.filter((file) => !takesLong(file))];
  }
}

/** Promises of time, of a machine that belongs to the tests. */
const alone = ['test/prove/alone/**/*.test.ts'];

/** What has workers, servers and browsers as a whole, and takes its time. */
const services = ['chaos', 'services', 'containers', 'browser'];

/** The files that a server gives to its pages, as in the configuration of TypeScript for them. */
const resolve = {
  alias: [{ find: /^\/assets\/model\/(.*)\.js$/, replacement: `${import.meta.dirname}/src/model/$1.ts` }],
};

type Size = 'short' | 'full';

/** Properties, generators and fuzzers are short for whoever changes something, and full where a change is submitted. */
const sizeHere: Size = process.env.TEST_SIZE === 'full' ? 'full' : 'short';

const project = (name: string, folders: string[], testTimeout: number, size: Size) => ({
  resolve,
  test: {
    name,
    include: folders.map((folder) => `test/${folder}/**/*.test.ts`),
    exclude: [] as string[],
    isolate: false, // they keep nothing in modules, and start sooner without
    provide: { size },
    testTimeout,
    hookTimeout: 120_000,
  },
});

const prove = (name: string) => ({
  ...project(name, [...services, 'prove'], 3_600_000, 'full').test,
  exclude: alone,
  isolate: true,
});

export default defineConfig({
  test: {
    maxWorkers: 6, // more than cores: most tests wait most of the time
    sequence: { sequencer: LongFirst },
    globalSetup: ['test/support/global-setup.ts'],
    projects: [
      project('unit', ['unit'], 30_000, sizeHere),
      project('integration', ['integration'], 180_000, sizeHere),
      project('e2e', ['e2e'], 180_000, sizeHere),
      project('chaos', services, 300_000, 'short'),
      { test: { ...prove('prove'), maxWorkers: 2, sequence: { groupOrder: 1 } } },
      {
        test: { ...prove('prove-alone'), include: alone, exclude: [], maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
