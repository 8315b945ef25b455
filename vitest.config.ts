import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that compute for long come first, beside those that wait for most of their time: projects are run one after another. */
class ComputingFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const computes = ({ moduleId }: TestSpecification) => /limiter.zoo|schedule.slots/.test(moduleId);
    const sorted = await super.sort(files);
    return [...sorted.filter(computes), ...sorted.filter((file) => !computes(file))];
  }
}

const project = (name: string, folders: string[], testTimeout: number, size: 'short' | 'full' = 'short') => ({
  test: {
    name,
    include: folders.map((folder) => `test/${folder}/**/*.test.ts`),
    isolate: name === 'prove', // the others keep nothing in modules, and start sooner without
    provide: { size },
    testTimeout,
    hookTimeout: 120_000,
  },
});

export default defineConfig({
  test: {
    maxWorkers: 6, // more than cores: most tests wait most of the time
    sequence: { sequencer: ComputingFirst },
    globalSetup: ['test/support/global-setup.ts'],
    projects: [
      project('unit', ['unit'], 30_000),
      project('integration', ['integration'], 180_000),
      project('e2e', ['e2e'], 180_000),
      project('chaos', ['chaos', 'containers', 'browser'], 300_000),
      project('prove', ['chaos', 'containers', 'browser', 'prove'], 3_600_000, 'full'),
    ],
  },
});
