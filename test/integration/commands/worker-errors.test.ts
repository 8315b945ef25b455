import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';

/** The lines of a log; throws for one that is not JSON. */
function linesOf(stderr: string): { level: string; msg: string; exit?: number; reason?: string; next?: string }[] {
  return stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

async function usedPort(atEnd: (task: () => Promise<void>) => void): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  atEnd(async () => void server.close());
  return (server.address() as { port: number }).port;
}

describe.concurrent('a worker that cannot work says so in one line of its log, with the exit code', () => {
  test.for([
    ['a Redis that refuses the password', ['worker'], { user: 'nobody' }, 6],
    ['a file of the token that is not there', ['worker'], { EXPUNGE_TOKEN_FILE: '/none/token' }, 5],
    ['a setting that makes no sense', ['worker'], { EXPUNGE_RATE: 'fast' }, 2],
  ] as const)('%s', async ([, args, given, exit], { onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const wrong = {
      EXPUNGE_REDIS_USERNAME_FILE: harness.file('user', 'nobody'),
      EXPUNGE_REDIS_PASSWORD_FILE: harness.file('password', 'wrong'),
    };
    const { code, stderr } = await harness.expunge(args, { env: 'user' in given ? wrong : given });
    const last = linesOf(stderr).at(-1)!;
    expect(last).toMatchObject({ level: 'error', msg: 'command failed', exit });
    expect(last.reason).not.toBe('');
    expect(code).toBe(exit);
  });

  test('a port that is in use', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const port = await usedPort(onTestFinished);
    const { code, stderr } = await harness.expunge(['worker', '--http', `${port}`]);
    const failed = linesOf(stderr).filter(({ level }) => level === 'error');
    expect(failed).toMatchObject([{ msg: 'command failed', exit: 2 }]);
    expect(code).toBe(2);
  });

  test('results that are to go into a file', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const file = harness.file('results', '');
    for (const path of [file, `${file}/below`]) {
      const { code, stderr } = await harness.expunge(['worker', '--results', path]);
      const reason = `--results: expected a folder, got ${path}: it is a file, or below one`;
      expect(linesOf(stderr).at(-1)).toMatchObject({ level: 'error', msg: 'command failed', exit: 2, reason });
      expect(code).toBe(2);
    }
  });

  test('for people, with EXPUNGE_LOG_FORMAT=text, it says what it always said', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    const env = { EXPUNGE_TOKEN_FILE: '/none/token', EXPUNGE_LOG_FORMAT: 'text' };
    const { stderr } = await harness.expunge(['worker'], { env });
    expect(stderr).toMatch(/^error: .*\/none\/token/m);
    expect(stderr).not.toContain('{');
  });
});
