import { describe, test } from 'vitest';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { openRawServer, type RawAnswer, rawAnswer } from '../../support/raw-server.ts';
import { forgetTarget } from '../../support/redis-keys.ts';

const ids = Array.from({ length: 2_000 }, (_, n) => `d-${n}`);
const json = ['Content-Type: application/json'];
const ok = rawAnswer(200, '{"ok":true}', json);

/** A detached run of dashboards, which so many worker processes delete at a server that answers so; returns once all of them have ended. */
async function openDeletedRun(
  atEnd: AtEnd,
  workers: number,
  answer: (path: string, nth: number) => RawAnswer,
  ...args: string[]
) {
  const harness = await openHarness(atEnd);
  const server = await openRawServer(atEnd, (request, nth) => answer(request.split(' ')[1]!, nth));
  atEnd(() => forgetTarget(server.url));
  const resources = { dashboards: { path: '/v1/dashboards/{id}', success: [200] } };
  const config = harness.file('c.json', JSON.stringify({ resources }));
  const env = {
    EXPUNGE_BASE_URL: server.url,
    EXPUNGE_CONFIG: config,
    EXPUNGE_UNREACHABLE_TIMEOUT_MS: '500',
    EXPUNGE_RETRY_DELAYS: '100ms,100ms,100ms,100ms,100ms',
  };
  const processes = await Promise.all(Array.from({ length: workers }, () => harness.spawnWorker([], env)));
  await harness.run([harness.list(ids), '--resource', 'dashboards', '--yes', '--detach', ...args], { env });
  await harness.runIs('over', ({ state }) => state === 'halted' || state === 'completed');
  for (const worker of processes) worker.signal('SIGTERM');
  await Promise.all(processes.map(({ ended }) => ended)); // each has stored its last results
  return harness.onlyRun();
}

describe.for([1, 4])('with %i worker processes', (workers) => {
  test('nothing is deleted by successes whose form has changed', async ({ expect, onTestFinished }) => {
    const executed = new Set<string>();
    const { state, halt, counts } = await openDeletedRun(onTestFinished, workers, (path) => {
      if (executed.size >= 1_000) return rawAnswer(200, '{"ok":false,"error":"ratelimited"}', json);
      executed.add(path);
      return ok;
    });
    expect([state, halt, counts.deleted]).toEqual(['halted', 'unexpected_answers', executed.size]);
  });

  test('no object that is there is absent after an answer that was cut off', async ({ expect, onTestFinished }) => {
    const cut: RawAnswer = { bytes: 'HTTP/1.1 404 Not Found\r\nContent-Length: 5000\r\n\r\nshort', isCutOff: true };
    const { state, counts } = await openDeletedRun(onTestFinished, workers, (path, nth) =>
      nth === 1 && path.endsWith('7') ? cut : ok,
    );
    expect([state, counts.deleted]).toEqual(['completed', ids.length]);
  });

  test('what a redirect has deleted is gone, and in doubt', async ({ expect, onTestFinished }) => {
    const answer = (path: string, nth: number) =>
      path.endsWith('7') ? rawAnswer(nth === 1 ? 303 : 404) : rawAnswer(200, '{"ok":true}', json);
    const args = ['--on-status', '303=retry', '--expect-absent'];
    const { state, counts } = await openDeletedRun(onTestFinished, workers, answer, ...args);
    expect([state, counts.deleted, counts.gone_unconfirmed]).toEqual(['completed', 1_800, 200]);
  });

  test('a run that gets no answer at all halts', async ({ expect, onTestFinished }) => {
    const { halt, counts } = await openDeletedRun(onTestFinished, workers, () => ({ bytes: '', isCutOff: true }));
    expect([halt, counts.deleted, counts.failed]).toEqual(['target_unreachable', 0, 0]);
  });
});
