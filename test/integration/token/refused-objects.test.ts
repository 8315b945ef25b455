import { describe, test } from 'vitest';
import { openDeleteServer, type Told } from '../../support/delete-server.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { makeIds } from '../../support/ids.ts';
import { forgetTarget } from '../../support/redis-keys.ts';

const ids = makeIds('o', 400);
const foreign = ids.filter((_, n) => n % 40 === 20 && n < 380);
const words = 'you are not the owner of this object';
const refusal: Told = { status: 401, body: JSON.stringify({ error: words }) };

/** An API whose other objects are gone after their first request, and a command for the list there. */
async function openList(atEnd: AtEnd, refuses: (id: string, sent: number) => Told | null) {
  const gone = new Set<string>();
  const server = await openDeleteServer(atEnd, (path) => {
    const id = decodeURIComponent(path.split('/').at(-1)!);
    const refused = refuses(id, server.seen.length);
    if (refused !== null) return refused;
    const isNew = !gone.has(id);
    gone.add(id);
    return isNew ? 204 : 404;
  });
  const harness = await openHarness(atEnd);
  atEnd(() => forgetTarget(server.url));
  const env: NodeJS.ProcessEnv = { EXPUNGE_BASE_URL: server.url };
  const run = (...args: string[]) =>
    harness.run([harness.list(ids), '--resource', 'annotations', '--rate', '200/s', '--yes', ...args], { env });
  return { harness, server, gone, env, run };
}

describe.concurrent('a token that the API refuses for some objects', () => {
  const isRefused = (id: string) => (foreign.includes(id) ? refusal : null);

  test('is an outcome of these objects, and all others are deleted', async ({ expect, onTestFinished }) => {
    const { harness, run, gone } = await openList(onTestFinished, isRefused);
    const { code, stderr } = await run();
    const { id, counts } = await harness.onlyRun();
    expect([code, counts.deleted, counts.failed], stderr).toEqual([3, ids.length - foreign.length, foreign.length]);
    expect([...gone].sort()).toEqual(ids.filter((one) => !foreign.includes(one)).sort());
    const failed = harness.outcomes(id).filter((row) => row.includes('http_401'));
    expect(failed).toHaveLength(foreign.length);
    for (const row of failed) expect(row).toContain(words);
  });

  test('is one with four workers as well', async ({ expect, onTestFinished }) => {
    const { harness, run, env } = await openList(onTestFinished, isRefused);
    for (let n = 0; n < 4; n++) await harness.worker([], env);
    expect((await run('--detach')).code).toBe(0);
    const { counts } = await harness.runIs(
      'completed',
      ({ state }) => state === 'completed' || state === 'halted',
      120_000,
    );
    expect([counts.deleted, counts.failed]).toEqual([ids.length - foreign.length, foreign.length]);
  });

  test('halts the run if nothing shows that others get through, and says how these ids can fail', async ({
    expect,
    onTestFinished,
  }) => {
    const last = ids.at(-1)!;
    const { harness, run, env } = await openList(onTestFinished, (id) => (id === last ? refusal : null));
    const { code, stderr } = await run();
    expect(code, stderr).toBe(5);
    expect(stderr).toContain(`(401: ${words}); ${ids.length - 1} requests got through with it before`);
    const { id } = await harness.onlyRun();
    expect((await harness.expunge(['cancel', id, '--yes'], { env })).code).toBe(0);
    const retried = await harness.expunge(['retry', id, '--on-status', '401=failed', '--yes', '--json'], { env });
    expect(retried.code, retried.stderr).toBe(3);
    expect(JSON.parse(retried.stdout.trimEnd().split('\n').at(-1)!)).toMatchObject({ failed: 1, rows: 1 });
  });
});

describe.concurrent('a token that dies in the middle', () => {
  test.for<[what: string, refusal: Told, said: string]>([
    ['with 401', refusal, `(401: ${words})`],
    [
      'with 403 and the code of AWS',
      { status: 403, body: '{"message":"it is expired"}', headers: { 'x-amzn-errortype': 'ExpiredTokenException' } },
      '(403: it is expired)',
    ],
    [
      'with 400 and the code of Azure',
      { status: 400, body: '{"error":{"code":"ExpiredAuthenticationToken","message":"it is expired"}}' },
      '(400: it is expired)',
    ],
    ['with 498', { status: 498, body: '{"error":{"code":498,"message":"Invalid token."}}' }, '(498: Invalid token.)'],
  ])('fails no id and costs at most 50 answers: %s', async ([, told, said], { expect, onTestFinished }) => {
    let refused = 0;
    const { harness, run, gone } = await openList(onTestFinished, (_, sent) =>
      sent > 200 && ++refused > 0 ? told : null,
    );
    const { code, stderr } = await run('--max-concurrency', '16');
    const { counts, halt } = await harness.onlyRun();
    expect([code, halt, counts.failed, counts.unknown, counts.deleted], stderr).toEqual([
      5,
      'credentials',
      0,
      0,
      gone.size,
    ]);
    expect(refused).toBeLessThanOrEqual(50);
    expect(stderr).toContain(said);
  });

  test('with a 403 that names no token fails ids', async ({ expect, onTestFinished }) => {
    const plain: Told = { status: 403, body: '{"message":"ExpiredTokenException"}' };
    const { harness, run } = await openList(onTestFinished, (_, sent) => (sent > 200 ? plain : null));
    await run();
    expect((await harness.onlyRun()).halt).not.toBe('credentials');
  });
});
