import { describe, test } from 'vitest';
import { keys } from '../../../src/redis/keys.ts';
import { openDeleteServer, type Told } from '../../support/delete-server.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { makeIds } from '../../support/ids.ts';
import { forgetTarget } from '../../support/redis-keys.ts';

const ids = makeIds('p', 200);

/** A run of the list that ends early, because the API answers so. */
async function endEarly(atEnd: AtEnd, answer: () => Told) {
  const server = await openDeleteServer(atEnd, answer);
  const harness = await openHarness(atEnd);
  atEnd(() => forgetTarget(server.url));
  const env: NodeJS.ProcessEnv = { EXPUNGE_BASE_URL: server.url };
  const command = [harness.list(ids), '--resource', 'annotations', '--yes'];
  const running = harness.start(['run', ...command], env);
  const run = await harness.runIs('held', ({ state }) => state === 'halted' || state === 'paused');
  if (run.state === 'paused') running.signal('SIGINT'); // it would wait for an operator
  await running.ended;
  const asked = [...new Set(server.seen)].map((path) => decodeURIComponent(path.split('/').at(-1)!));
  const rows = async () => {
    const { stdout } = await harness.expunge(['report', run.id, '--format', 'ndjson'], { env });
    return stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id: string; outcome: string; excerpt: string });
  };
  const explain = async (id: string) => (await harness.expunge(['explain', 'annotations', id], { env })).stdout;
  return { harness, env, command, stderr: running.stderr, run, asked, rows, explain };
}

describe.concurrent('an answer that is not the outcome of its id', () => {
  test.for<[what: string, answer: Told, state: string, because: string]>([
    [
      'a 404 like those of many others',
      404,
      'halted',
      'answered 404; not recorded, because many ids in a row were answered so: answer 404',
    ],
    ['a 402', 402, 'halted', 'answered 402; not recorded, because it halts the run: answer 402'],
    [
      'a 429 that asks to wait for two hours',
      { status: 429, body: 'slow down', headers: { 'retry-after': '7200' } },
      'paused',
      'answered 429; not recorded, because it is about the rate: slow down',
    ],
    ['a 401', 401, 'halted', 'answered 401; not recorded, because it is about the token: answer 401'],
  ])('is kept as its last one: %s', async ([, answer, state, because], { expect, onTestFinished }) => {
    const { run, asked, rows, explain, stderr } = await endEarly(onTestFinished, () => answer);
    expect(run.state, stderr).toBe(state);
    const all = await rows();
    expect(all.map(({ outcome }) => outcome)).toEqual(ids.map(() => 'pending'));
    const told = all.filter(({ excerpt }) => excerpt !== '');
    expect(told.map(({ excerpt }) => excerpt)).toEqual(asked.map(() => because));
    expect(told.map(({ id }) => id).sort()).toEqual(asked.toSorted());

    const known = await explain(asked[0]!);
    expect(known).toContain(
      `while the run is ${state}, until the command resume continues it. It waits after it was sent`,
    );
    expect(known).toContain(`${because[0]!.toUpperCase()}${because.slice(1)}.`);
    expect(known).not.toMatch(/next try|first attempt/);
    const other = ids.find((id) => !asked.includes(id))!;
    expect(await explain(other)).toMatch(/It waits for its first attempt\.\n$/);
  });

  test('is forgotten with its outcome', async ({ expect, onTestFinished }) => {
    let answer = 402;
    const { harness, env, command, run, rows } = await endEarly(onTestFinished, () => answer);
    expect((await rows()).some(({ excerpt }) => excerpt !== '')).toBe(true);
    answer = 204;
    expect((await harness.run(command, { env })).code).toBe(0);
    expect((await rows()).every(({ outcome, excerpt }) => outcome === 'deleted' && excerpt === '')).toBe(true);
    expect(await harness.redis.hgetall(keys.details(run.id))).toEqual({});
  });

  test('is told of an id that a cancelled run leaves without an attempt', async ({ expect, onTestFinished }) => {
    const { harness, env, run, asked, rows, explain } = await endEarly(onTestFinished, () => 402);
    expect((await harness.expunge(['cancel', run.id, '--yes'], { env })).code).toBe(0);
    const told = (await rows()).filter(({ outcome, excerpt }) => outcome === 'not_attempted' && excerpt !== '');
    expect(told.map(({ id }) => id).sort()).toEqual(asked.toSorted());
    expect(await explain(asked[0]!)).toContain('It was sent at least once.');
    expect(await explain(ids.find((id) => !asked.includes(id))!)).toContain('it was never sent.');
  });
});
