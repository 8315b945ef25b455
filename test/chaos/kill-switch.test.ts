import { describe, test } from 'vitest';
import { openHarness } from '../support/harness.ts';
import { annotations, makeIds } from '../support/ids.ts';
import { useKillSwitch } from '../support/kill-switch.ts';
import { until } from '../support/processes.ts';
import { promised, sized } from '../support/size.ts';

const promisedMs = promised(1_000);
const fleets = sized([2], [4, 4, 2, 2, 0, 0]);

describe('the kill switch, as a command and as a file', () => {
  test.for(fleets)(
    'lets nothing of %i workers leave any more, and costs no id an attempt (0: a run by itself)',
    async (workers, { expect, onTestFinished }) => {
      const kill = { workers, ...sized({ ids: 2_000, perSecond: 400 }, { ids: 25_000, perSecond: 1_000 }) };
      const { byCommand, byFile, problem: trouble } = await useKillSwitch(onTestFinished, kill);
      for (const [way, { lastAfterMs, wentOnAfterMs }] of Object.entries({ byCommand, byFile })) {
        const after = `last request after ${lastAfterMs} ms, the first again ${wentOnAfterMs} ms after it was lifted`;
        console.log(`${workers} workers, ${way}: ${after}`);
      }
      expect(byCommand.lastAfterMs).toBeLessThanOrEqual(promisedMs);
      expect(byFile.lastAfterMs).toBeLessThanOrEqual(promisedMs);
      expect(byCommand.words).toContain('Stopped for all runs of this target by ana: they call us.');
      expect(byFile.words).toMatch(/Stopped by the file \S+ on \S+: they call us\./);
      expect(trouble).toBeNull();
    },
  );

  /** @invariant stop-everywhere */
  test('holds runs that are submitted later, survives the workers, and stops no other target', async ({
    expect,
    onTestFinished,
  }) => {
    const ids = makeIds('l', 40);
    const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
    const ana = { EXPUNGE_USER: 'ana' };
    const call = async (args: string[], env = {}, code = 0) => {
      const done = await harness.expunge(args, { env });
      expect(done.code, done.stderr).toBe(code);
      return done;
    };
    const nobody = 2; // is there yet, but the stop is kept
    await call(['stop-all', '--reason', 'first'], ana, nobody);
    expect((await call(['stop-all', '--reason', 'second'], { EXPUNGE_USER: 'bob' })).stderr).toContain(
      'stopped already, by ana: first',
    );
    const words = 'Stopped for all runs of this target by ana: first; by bob: second';
    const resume = String.raw`${words}\. Resume with: .*start-all --base-url`;

    const submit = ['run', harness.list(ids), '--resource', 'annotations', '--yes', '--expect-absent'];
    const detached = await call([...submit, '--detach', '--json']);
    expect(detached.stderr).toMatch(new RegExp(`Waits     ${resume}`));
    expect(detached.stderr).toMatch(new RegExp(`warning: the run is stopped\\. ${resume}`));
    expect(JSON.parse(detached.stdout.trim().split('\n').at(-1)!)).toMatchObject({
      state: 'running',
      reason: words.replace('Stopped', 'stopped'),
    });

    for (let n = 0; n < 2; n++) {
      const worker = await harness.worker();
      await until('the worker says why nothing is sent', () => worker.stderr.includes(words));
      worker.signal('SIGTERM');
      expect(await worker.ended).toMatchObject({ code: 0 });
    }
    expect(harness.arrivals).toEqual([]);

    // The same list to the same server, for another account: the switch of one target is not that of another.
    await call(submit, { EXPUNGE_ACCOUNT: `${harness.target.account}-other` });
    expect(harness.arrivals).toHaveLength(ids.length);

    await harness.worker();
    await call(['start-all'], ana);
    await call(['start-all'], { EXPUNGE_USER: 'bob' }); // each lifts their own stop
    await harness.runIs('completed', ({ state }) => state === 'completed');
    expect((await harness.onlyRun()).counts).toMatchObject({ absent: ids.length });
    expect((await call(['start-all'])).stderr).toContain('were not stopped');
  });
});
