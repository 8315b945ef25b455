import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/read-config.ts';
import { parseRun, runStates } from '../../../src/ledger/run.ts';
import { parseRate, storedRate } from '../../../src/model/rate.ts';
import type { ListAction } from '../../../src/operations/list-action.ts';
import { inherit, requireEndedForRetry } from '../../../src/operations/retried-run.ts';
import { noCounts } from '../terminal/snapshots.ts';

const hash = { state: 'completed', onStatus: '409=failed', rate: storedRate(parseRate('50/s')) };
const told = parseRun('r1', hash);

/** The settings of a command with these flags that retries the run. */
function inherited(flags: Record<string, string>, run = told, mayBeGone = 0) {
  const invocation = { ...loadConfig({ flags, env: {}, configFile: undefined }), options: {} } as unknown as ListAction;
  const { config } = inherit(invocation, { run, chosen: noCounts, mayBeGone });
  const { rate, onStatus, expectAbsent } = config;
  return { rate, onStatus, expectAbsent };
}

describe('a retry', () => {
  const kept = { rate: told.rate, onStatus: '409=failed', expectAbsent: false };

  it('keeps what the run was told', () => {
    expect(inherited({})).toEqual(kept);
  });

  it('takes from its command what that says', () => {
    expect(inherited({ rate: '9/s' })).toEqual({ ...kept, rate: parseRate('9/s') });
    expect(inherited({ onStatus: '409=absent' })).toEqual({ ...kept, onStatus: '409=absent' });
  });

  it('expects ids to be gone where the run did, or where some of them may have been deleted', () => {
    expect(inherited({}, parseRun('r1', { ...hash, expectAbsent: '1' }))).toMatchObject({ expectAbsent: true });
    expect(inherited({}, told, 1)).toMatchObject({ expectAbsent: true });
    expect(inherited({}, told, 0)).toMatchObject({ expectAbsent: false });
  });

  it('goes unbounded in no case: a rate that cannot be read has to be given', () => {
    const other = parseRun('r1', { ...hash, rate: '{"in":"another form"}' });
    expect(() => inherited({}, other)).toThrow("is in a form that this version of expunge can't read");
    expect(inherited({ rate: '9/s' }, other)).toMatchObject({ rate: parseRate('9/s') });
  });
});

describe('a run that has not ended', () => {
  it.each(runStates.filter((state) => !['completed', 'cancelled'].includes(state)))(
    'and is %s is not retried, and the error says how it ends',
    (state) => {
      for (const detached of ['0', '1']) {
        const run = parseRun('r1', { state, command: 'cd /x && expunge run old.csv', detached });
        const advice = expect.stringMatching(/expunge (run old\.csv|resume r1|cancel r1)/);
        expect(() => requireEndedForRetry(run)).toThrow(expect.objectContaining({ code: 'USAGE', next: advice }));
      }
    },
  );

  it.each(['completed', 'cancelled'])('is not one that is %s', (state) => {
    expect(() => requireEndedForRetry(parseRun('r1', { state }))).not.toThrow();
  });
});
