import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isFinalized, type Run, readRun } from '../../src/ledger/run.ts';
import type { Summary } from '../../src/ledger/summary.ts';
import { addressFromUrl } from '../../src/redis/address.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { connectLedger, ready } from '../../src/redis/connect.ts';
import type { JournalPage } from '../../src/sandbox/journal.ts';
import { madeId } from '../../src/sandbox/objects.ts';
import { findBroken } from './checker.ts';
import { docker } from './engine.ts';
import { until } from './processes.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What `docker-compose.yml` starts, under a name and on ports of its own. */
export type Stack = {
  readonly image: string;
  /** `docker compose …` of it, with the sandbox; `env`: variables that differ. */
  compose(args: string[], input?: string, env?: NodeJS.ProcessEnv): Promise<string>;
  /** `expunge …` in the first worker, as the README says it. */
  expunge(args: string[], input?: string): Promise<string>;
  /** The name of its nth container of a service. */
  container(service: 'worker' | 'redis', n?: number): string;
  /** What the engine knows of a container: `{{.State.ExitCode}}`. */
  inspect(container: string, format: string): Promise<string>;
  /** Submits a run of these ids to the workers; its id. */
  submit(ids: readonly string[], args?: string[]): Promise<string>;
  /** Waits until the run is so. Reaches Redis wherever it is by now. */
  runIs(run: string, what: string, condition: (run: Run) => boolean): Promise<Run>;
  /** Waits until so many more rows of the run are settled, or it has ended. */
  settles(run: string, rows: number): Promise<unknown>;
  journal(): Promise<JournalPage>;
  /** The first promise that an ended run breaks; see `findBroken`. */
  broken(run: string, ids: readonly string[]): Promise<string | null>;
  close(): Promise<void>;
};

/** The objects of the sandbox are `objects` annotations; the last hundred are never listed. */
export type StackOptions = { objects: number; sandbox?: string[] };

/** Builds the image. Starts nothing: that is `compose(['up', '--detach'])`. Close it whatever happens. */
export async function openStack({ objects, sandbox = [] }: StackOptions): Promise<Stack> {
  const project = `expunge-test-${randomBytes(4).toString('hex')}`;
  const folder = mkdtempSync(join(tmpdir(), 'expunge-stack-'));
  const overrides = join(folder, 'compose.json');
  writeFileSync(overrides, JSON.stringify(overriding(project, objects, sandbox)));
  const files = ['--file', join(root, 'docker-compose.yml'), '--file', overrides];
  const settings = {
    WORKER_IMAGE: project,
    EXPUNGE_BASE_URL: 'http://sandbox:8080',
    EXPUNGE_TOKEN_FILE: join(root, 'src/sandbox/token'),
  };
  const compose: Stack['compose'] = (args, input = '', env = {}) =>
    docker(['compose', '--project-name', project, ...files, ...args], { env: { ...settings, ...env }, input });
  const expunge: Stack['expunge'] = (args, input) => compose(['exec', '-T', 'worker', 'expunge', ...args], input);
  const addressOf = (service: string, port: string) => compose(['port', service, port]);
  const journal: Stack['journal'] = async () =>
    (await (await fetch(`http://${await addressOf('sandbox', '8080')}/journal`)).json()) as JournalPage;
  const close = async () => {
    await compose(['down', '--volumes', '--timeout', '1']).catch((error) => console.error(error));
    await docker(['image', 'rm', project]).catch(() => {});
    rmSync(folder, { recursive: true, force: true });
  };
  /** Redis is published on another port each time it starts. */
  const withRedis = async <T>(body: (redis: RedisClient) => Promise<T>): Promise<T> => {
    const address = addressFromUrl(`redis://${await addressOf('redis', '6379')}`, false);
    const redis = connectLedger(address);
    try {
      await ready(redis, address, 10_000);
      return await body(redis);
    } finally {
      redis.disconnect();
    }
  };
  const runIs: Stack['runIs'] = (id, what, condition) =>
    withRedis((redis) => {
      const found = async () => {
        const run = await readRun(redis, id);
        return run && condition(run) ? run : null;
      };
      return until(`the run is ${what}`, found, 180_000);
    });
  let requestsBefore = 0;
  try {
    await compose(['build', '--quiet']);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    image: project,
    compose,
    expunge,
    journal,
    close,
    container: (service, n = 1) => `${project}-${service}-${n}`,
    inspect: (container, format) => docker(['inspect', '--format', format, container]),
    submit: async (ids, args = []) => {
      requestsBefore = (await journal()).requests.length;
      const submitted = ['run', '-', '--resource', 'annotations', '--detach', '--yes', '--json', ...args];
      const said = await expunge(submitted, `${ids.join('\n')}\n`);
      return (JSON.parse(said.split('\n').at(-1)!) as Summary).run;
    },
    runIs,
    settles: async (id, rows) => {
      const { settled } = await runIs(id, 'there', () => true);
      await runIs(id, 'further', (run) => run.settled >= settled + rows || isFinalized(run.state));
    },
    broken: async (id, ids) => {
      const { requests, executed, confirmed } = await journal();
      const gone = new Set(executed);
      const made = new Set(annotationIds(1, objects).map((made) => `annotations/${made}`));
      const evidence = {
        seen: requests.slice(requestsBefore),
        executed: gone,
        confirmed: new Set(confirmed),
        exists: (resource: string, id: string) => made.has(`${resource}/${id}`) && !gone.has(`${resource}/${id}`),
      };
      const bystanders = annotationIds(objects - 99, objects);
      return withRedis(async (redis) => {
        const run = (await readRun(redis, id))!;
        return findBroken({ redis, run, sandbox: evidence, resource: 'annotations', ids, bystanders });
      });
    },
  };
}

/** The names of the sandbox's annotations from the nth to the last. */
export function annotationIds(from: number, to: number): string[] {
  return Array.from({ length: to - from + 1 }, (_, n) => madeId('annotations', from + n));
}

/** An API with a journal to hold ledgers against, and Redis within reach of the test. */
function overriding(image: string, objects: number, sandbox: string[]) {
  const command = ['sandbox', '--host', '0.0.0.0', '--port', '8080', '--journal'];
  return {
    services: {
      sandbox: {
        image,
        command: [...command, '--resource', `annotations=${objects},views=0`, ...sandbox],
        ports: ['127.0.0.1::8080'],
        healthcheck: { disable: true }, // that of the image is for workers
      },
      worker: { environment: { EXPUNGE_ALLOW_HTTP: 'sandbox' } },
      redis: { ports: ['127.0.0.1::6379'] },
    },
  };
}

/** What docker compose makes of a file of this repository in surroundings of these variables; nothing is started. */
export async function composed(file: string, env: NodeJS.ProcessEnv) {
  const settings = ['compose', '--project-directory', root, '--file', join(root, file), 'config', '--format', 'json'];
  return JSON.parse(await docker(settings, { env }));
}
