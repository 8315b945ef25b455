import { defineConfig } from 'vitest/config';

const project = (name: string, folders: string[], testTimeout: number, globalSetup: string[] = [], retry = 0) => ({
  test: {
    retry,
    isolate: name === 'prove', // the others keep nothing in modules, and start sooner without
    name,
    include: folders.map((folder) => `test/${folder}/**/*.test.ts`),
    testTimeout,
    hookTimeout: 120_000,
    globalSetup,
  },
});

const withRedis = ['test/support/global-setup.ts'];

export default defineConfig({
  test: {
    maxWorkers: 3, // more than cores: most of the time the tests wait for processes
    projects: [
      project('unit', ['unit'], 30_000),
      project('integration', ['integration'], 60_000, withRedis),
      // Real processes under promises of a second, on a machine that others use, too: what stumbles once may try again; what is broken fails.
      project('e2e', ['e2e', 'chaos'], 120_000, withRedis, 1),
      project('containers', ['containers'], 120_000),
      project('prove', ['prove'], 3_600_000, withRedis),
    ],
  },
});
