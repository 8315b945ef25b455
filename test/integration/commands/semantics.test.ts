import { describe, expect, test } from 'vitest';
import { readTargetAudit } from '../../../src/ledger/audit.ts';
import { readSemantics } from '../../../src/ledger/semantics.ts';
import { stopTarget } from '../../../src/ledger/steer-target.ts';
import { targetOf } from '../../../src/model/target.ts';
import { openDeleteServer } from '../../support/delete-server.ts';
import { type AtEnd, openHarness } from '../../support/harness.ts';
import { forgetTarget } from '../../support/redis-keys.ts';

/** A server that answers every DELETE with this status, and `check --semantics` of it. */
async function openChecked(atEnd: AtEnd, status: number) {
  const harness = await openHarness(atEnd);
  const server = await openDeleteServer(atEnd, () => status);
  const { fp } = targetOf(server.url, harness.target.account);
  atEnd(() => forgetTarget(server.url));
  const onServer = { EXPUNGE_BASE_URL: server.url };
  const check = (args: string[], typed?: readonly (readonly [string, string])[]) =>
    harness.expunge(['check', '--semantics', ...args], { env: onServer, ...(typed && { typed }) });
  return { harness, server, fp, onServer, check, known: () => readSemantics(harness.redis, fp) };
}

const words = 'this API answers 204 for ids that do not exist: deleted means accepted';

describe('check --semantics', () => {
  test.for([404, 410] as const)(
    'of an API that answers %s says that a 204 means deleted',
    async (status, { onTestFinished }) => {
      const { harness, server, fp, check, known } = await openChecked(onTestFinished, status);
      const { code, stdout, stderr } = await check(['--yes', '--reason', 'OPS-7']);
      expect([code, server.seen.length]).toEqual([0, 2]);
      for (const path of server.seen) expect(stderr).toContain(`DELETE ${server.url}${path}`);
      expect(stdout).toContain(`ok     absent  views: DELETE ${server.url}${server.seen[1]} was answered ${status}`);
      expect(await known()).toMatchObject([
        { resource: 'annotations', answers: 'gone', status, who: expect.any(String) },
        { resource: 'views', answers: 'gone', status, at: expect.any(Number) },
      ]);
      expect(await readTargetAudit(harness.redis, fp)).toMatchObject([
        { action: 'semantics', by: 'operator', reason: 'OPS-7', what: server.seen[0] },
        { action: 'semantics', what: server.seen[1] },
      ]);
    },
  );

  test('of an API that answers 204 warns, and so does all that tells of its runs', async ({ onTestFinished }) => {
    const { harness, server, onServer, check, known } = await openChecked(onTestFinished, 204);
    const { code, stdout } = await check(['--resource', 'views', '--absent-id', 'v-0', '--confirm', '1']);
    expect([code, server.seen]).toEqual([0, ['/v2/views/v-0']]);
    expect(stdout).toContain('this API answers 204 for views that do not exist: deleted means accepted');
    expect(await known()).toMatchObject([{ resource: 'views', answers: 'accepted', status: 204 }]);
    await check(['--yes']);
    const env = { env: onServer };
    const list = ['--resource', 'views', '--yes'];
    const ran = await harness.run([harness.list(['v-1']), ...list], env);
    expect(ran.stderr.split(words)).toHaveLength(3); // plan and ending
    const { id } = await harness.onlyRun();
    const told = async (...args: string[]) => {
      const { stdout, stderr } = await harness.expunge(args, env);
      return stdout + stderr;
    };
    expect(await told('status', id)).toContain(words);
    expect(await told('report', id)).toContain(words);
    expect(await told('report', id, '--format', 'html')).toContain(words);
    expect(await told('explain', 'views', 'v-1')).toContain('This API answers 204 for ids that do not exist');
  });

  test('says nothing of that where nothing is known, or the API answers 404', async ({ onTestFinished }) => {
    const { harness, onServer, check } = await openChecked(onTestFinished, 404);
    await check(['--yes']);
    const { stderr } = await harness.run([harness.list(['v-1']), '--resource', 'views', '--yes'], { env: onServer });
    expect(stderr).not.toContain('that do not exist');
  });

  test.for([
    [403, 3],
    [500, 3],
    [401, 5],
  ] as const)(
    'of an API that answers %s is inconclusive, and remembers nothing',
    async ([status, exit], { onTestFinished }) => {
      const { check, known } = await openChecked(onTestFinished, status);
      const { code, stdout } = await check(['--resource', 'views', '--yes']);
      expect([code, stdout]).toEqual([exit, expect.stringContaining(`was answered ${status}: inconclusive`)]);
      expect(await known()).toEqual([]);
    },
  );

  test('keeps what it knew where a later answer is inconclusive, and replaces it where that is another one', async ({
    onTestFinished,
  }) => {
    let status = 204;
    const harness = await openHarness(onTestFinished);
    const server = await openDeleteServer(onTestFinished, () => status);
    onTestFinished(() => forgetTarget(server.url));
    const { fp } = targetOf(server.url, harness.target.account);
    const check = () =>
      harness.expunge(['check', '--semantics', '--resource', 'views', '--yes'], {
        env: { EXPUNGE_BASE_URL: server.url },
      });
    const answering = async (next: number) => {
      status = next;
      await check();
      return (await readSemantics(harness.redis, fp)).map(({ answers }) => answers);
    };
    expect([await answering(204), await answering(503), await answering(404)]).toEqual([
      ['accepted'],
      ['accepted'],
      ['gone'],
    ]);
  });

  test('sends nothing unless somebody agrees, by typing the number of requests or on the command line', async ({
    onTestFinished,
  }) => {
    const { server, check } = await openChecked(onTestFinished, 404);
    const unasked = await check([]);
    expect([unasked.code, unasked.stdout]).toEqual([2, expect.stringContaining('there is no terminal to confirm on')]);
    const refused = await check(
      [],
      [
        ['Type 2 to send', 'yes\r'],
        ['2 tries are left', 'yes\r'],
        ['1 try is left', 'yes\r'],
      ],
    );
    expect([refused.code, refused.stdout]).toEqual([2, expect.stringContaining('not confirmed; nothing was sent')]);
    expect((await check(['--confirm', '1'])).code).toBe(2);
    expect(server.seen).toEqual([]);
    expect((await check([], [['Type 2 to send', '2\r']])).code).toBe(0);
    expect(server.seen).toHaveLength(2);
  });

  test('sends nothing while the target is stopped, for a protected or unsafe id, or one of which the resource is not named', async ({
    onTestFinished,
  }) => {
    const { harness, server, fp, check } = await openChecked(onTestFinished, 404);
    const kept = harness.file('kept.txt', 'v-1\n');
    const env = { EXPUNGE_BASE_URL: server.url, EXPUNGE_PROTECT: kept };
    const named = ['check', '--semantics', '--resource', 'views', '--yes', '--absent-id'];
    expect((await harness.expunge([...named, 'v-1'], { env })).stderr).toContain('protects this id');
    expect((await check(['--resource', 'views', '--yes', '--absent-id', '../x'])).code).toBe(2);
    expect((await check(['--yes', '--absent-id', 'v-1'])).stderr).toContain('needs the resource');
    await stopTarget(harness.redis, fp, { who: 'ana', reason: 'no', at: Date.now() });
    expect((await check(['--yes'])).code).toBe(4);
    expect(server.seen).toEqual([]);
  });

  test('sends nothing more once the target is stopped, also after somebody agreed', async ({ onTestFinished }) => {
    const harness = await openHarness(onTestFinished);
    let fp = '';
    const server = await openDeleteServer(onTestFinished, async () => {
      await stopTarget(harness.redis, fp, { who: 'ana', reason: 'no', at: Date.now() });
      return 404;
    });
    onTestFinished(() => forgetTarget(server.url));
    fp = targetOf(server.url, harness.target.account).fp;
    const env = { EXPUNGE_BASE_URL: server.url };
    const { code, stdout } = await harness.expunge(['check', '--semantics', '--yes'], { env });
    expect([code, stdout]).toEqual([4, expect.stringContaining('not sent. Stopped for all runs of this target')]);
    expect(server.seen).toHaveLength(1);
  });
});
