import { join } from 'node:path';
import { describe, test } from 'vitest';
import { readSources } from '../../../src/config/list-source.ts';
import { readEvents } from '../../../src/ledger/outbox.ts';
import { minute, openScheduleHarness, type ScheduleHarness, someIds, start } from '../../support/schedule-harness.ts';

const occurrences = Array.from({ length: 8 }, (_, n) => start + n * minute);
const away = readSources({ expired: { command: ['false'] } });

/** What receivers are told, in order. */
async function told({ redis, target }: ScheduleHarness) {
  return (await readEvents(redis, target.fp, 0, 50)).map(({ event }) => event);
}

/** The run of the occurrence is made and ends well. */
async function goWell(harness: ScheduleHarness, occurrence: number): Promise<void> {
  harness.list(someIds(`at-${occurrence}`, 5));
  await harness.at(occurrence);
  await harness.finish((await harness.schedule()).lastRun);
}

describe.concurrent('receivers are told of a schedule', () => {
  test('whose source fails, once until it gives a list again, and then that it does', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    for (const occurrence of occurrences.slice(1, 4)) await harness.at(occurrence, { sources: away });
    await goWell(harness, occurrences[4]!);
    await harness.at(occurrences[5]!, { sources: away });
    const [failed, recovered, again, ...others] = await told(harness);
    const id = `schedule-${harness.target.fp}-nightly`;
    expect(failed).toMatchObject({
      id: `${id}-failed-${occurrences[1]}`,
      type: 'schedule.failed',
      timestamp: new Date(occurrences[1]!).toISOString(),
      data: { schedule: 'nightly', occurrence: new Date(occurrences[1]!).toISOString(), occurrences: 1 },
    });
    expect(failed!.text).toMatch(
      /^Schedule nightly on .* made no run: it got no complete list: source expired: the command false ended with 1$/,
    );
    expect(recovered).toMatchObject({ id: `${id}-recovered-${occurrences[4]}`, data: { failed_occurrences: 3 } });
    expect(recovered!.text).toMatch(/^Schedule nightly on .* gets its list again, after 3 occurrences failed$/);
    expect([again!.id, others]).toEqual([`${id}-failed-${occurrences[5]}`, []]);
  });

  test('whose occurrences were missed, with their number, also of those before one that was handled', async ({
    expect,
    onTestFinished,
  }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add({ maxDelayMs: 1_000 });
    await harness.at(occurrences[3]! + 5_000);
    await harness.at(occurrences[4]! + 5_000);
    const [missed, ...others] = await told(harness);
    expect(missed).toMatchObject({ type: 'schedule.missed', data: { occurrences: 3, reason: 'seen 5 s late' } });
    expect(missed!.text).toMatch(/^Schedule nightly on .* missed 3 occurrences: seen 5 s late$/);
    expect(others).toEqual([]);

    const late = await openScheduleHarness(onTestFinished);
    await late.add();
    late.list(someIds('v', 5));
    await late.at(occurrences[4]!);
    expect(await told(late)).toMatchObject([{ type: 'schedule.missed', data: { occurrences: 3 } }]);
    expect(await late.runs()).toHaveLength(1);
  });

  test('whose run takes too long, once for all occurrences that it skips', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    harness.list(someIds('v', 5));
    for (const occurrence of occurrences.slice(1, 5)) await harness.at(occurrence);
    const { lastRun } = await harness.schedule();
    const events = await told(harness);
    expect(events).toMatchObject([
      { type: 'schedule.skipped', data: { occurrences: 1, reason: `run ${lastRun} has not ended` } },
    ]);
  });

  test.for([
    ['to whose folder no file has come, once', {}, ['schedule.empty']],
    ['of which that is expected, never', { settings: { resource: 'views', maxDeletes: '9', allowEmpty: 'true' } }, []],
  ] as const)('%s', async ([, definition, expected], { expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add(definition);
    const glob = join(harness.folder, '*.csv');
    const sources = readSources({ expired: { glob, archive: join(harness.folder, 'done') } });
    for (const occurrence of occurrences.slice(1, 4)) await harness.at(occurrence, { sources });
    expect((await told(harness)).map(({ type }) => type)).toEqual(expected);
  });

  test('once, though two workers come to an occurrence at once', async ({ expect, onTestFinished }) => {
    const harness = await openScheduleHarness(onTestFinished);
    await harness.add();
    await Promise.all(Array.from({ length: 4 }, () => harness.at(occurrences[1]!, { sources: away })));
    await Promise.all(Array.from({ length: 4 }, () => harness.at(occurrences[2]!, { sources: away })));
    expect(await told(harness)).toHaveLength(1);
  });
});
