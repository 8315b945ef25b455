import { describe, expect, it } from 'vitest';
import type { Run } from '../../../src/ledger/run.ts';
import {
  type Cause,
  causes,
  findStandings,
  type Reading,
  standingFacts,
  standingText,
} from '../../../src/ledger/standing.ts';
import { parseRate } from '../../../src/model/rate.ts';
import { toTypeAnywhere } from '../../../src/model/to-type.ts';
import { lineText, panelText } from '../../../src/terminal/panel.ts';
import { reading, snapshot, snapshotOf } from '../terminal/snapshots.ts';
import { target } from '../terminal/target-states.ts';

const now = snapshot().at;
const later = now + 3_600_000;
const base = '--base-url https://api.example.com';
const stop = { by: 'operator', who: 'ana', reason: 'they call us', at: now - 60_000 } as const;
const nobody = { target: null, processes: [], tokenless: [], alive: 0 };
const held = (kind: 'retry_after' | 'limit', reason: string) => ({
  limiter: target({ hold: { kind, reason, leftMs: 3_600_000, since: now - 1_000 } }),
});
const closed = (kind: 'trouble' | 'refused', reason: string) => ({
  limiter: target({ outage: { kind, reason, since: now - 60_000, countsTries: false } }),
});

type Seen = Partial<Omit<Reading, 'run'>> & { run?: Partial<Run> };
type Row = { seen: Seen; text: string; until?: number; since?: number; by?: string; next: string | null };

const run = { reason: 'release window', who: 'ana', changedAt: now - 5_000 };

/** One row for each cause: what is read, and what everybody is told. */
const table: Record<Cause, Row> = {
  preparing: {
    seen: { run: { state: 'preparing', createdAt: now - 9_000 } },
    text: 'its list is being written to Redis',
    since: now - 9_000,
    next: null,
  },
  planned: {
    seen: { run: { state: 'planned' } },
    text: 'it was not started; nothing was sent yet',
    next: 'resume RUN',
  },
  canary: {
    seen: { run: { state: 'halted', halt: 'canary', reason: '2 of 10 failed', changedAt: now - 5_000 } },
    text: 'halted after its canary: 2 of 10 failed',
    since: now - 5_000,
    next: 'resume RUN',
  },
  halted: {
    seen: { run: { state: 'halted', halt: 'max_failures', reason: '6 ids failed', changedAt: now - 5_000 } },
    text: 'halted: 6 ids failed',
    since: now - 5_000,
    next: 'resume RUN',
  },
  paused: {
    seen: { run: { state: 'paused', by: 'operator', ...run } },
    text: 'paused by ana: release window',
    since: now - 5_000,
    by: 'ana',
    next: 'resume RUN',
  },
  cancelling: {
    seen: { run: { state: 'cancelling', ...run } },
    text: 'cancelling by ana: release window',
    since: now - 5_000,
    by: 'ana',
    next: null,
  },
  redis: { seen: { away: 'Redis does not answer' }, text: 'Redis does not answer', next: null },
  redis_writes: { seen: { refused: 'its disk is full' }, text: 'Redis rejects writes: its disk is full', next: null },
  dead_command: {
    seen: { isAbandoned: true, run: { detached: false, activeUntil: now - 8_000, command: './expunge run ids.csv' } },
    text: 'the command that deleted it has ended, and no other process has taken over',
    since: now - 8_000,
    next: './expunge run ids.csv',
  },
  stop: {
    seen: { stops: { ...nobody, alive: 1, target: stop } },
    text: 'stopped for all runs of this target by ana: they call us',
    since: stop.at,
    by: 'ana',
    next: `start-all ${base}`,
  },
  unreadable_rate: {
    seen: { run: { unreadRate: 'fast' } },
    text: `its rate "fast" is in a form that this version of expunge can't read`,
    next: 'rate RUN 200/s',
  },
  other_definition: {
    seen: { run: { misfit: { process: 'w1', why: 'the resource dashboards is not defined here', at: now - 5_000 } } },
    text: 'the worker on w1 deletes nothing of it: the resource dashboards is not defined here',
    since: now - 5_000,
    next: 'Give that worker the resources of the configuration file with which the run was made',
  },
  no_worker: {
    seen: { stops: nobody, limiter: target({ silentMs: 70_000 }) },
    text: 'no worker of this target is alive',
    since: now - 70_000,
    next: `worker ${base}`,
  },
  no_token: {
    seen: { stops: { ...nobody, alive: 1, tokenless: [{ reason: 'the token file is empty', since: now - 4_000 }] } },
    text: 'no token: the token file is empty',
    since: now - 4_000,
    next: `check ${base}`,
  },
  stop_file: {
    seen: { stops: { ...nobody, alive: 1, processes: [{ ...stop, by: 'file', who: 'the file /run/stop on node-7' }] } },
    text: 'stopped by the file /run/stop on node-7: they call us',
    since: stop.at,
    by: 'the file /run/stop on node-7',
    next: 'Sending resumes when that file is removed',
  },
  grace: {
    seen: { run: { startsAt: later } },
    text: 'in its grace period, nothing is sent yet',
    until: later,
    next: 'cancel RUN',
  },
  window: {
    seen: { run: { window: '22:00-23:00' } },
    text: 'outside its window, continues Fri 22:00 UTC',
    until: Date.UTC(2026, 10, 20, 22),
    next: null,
  },
  limit: {
    seen: held('limit', 'the limit of this target is used up (250 a day)'),
    text: 'the limit of this target is used up (250 a day)',
    since: now - 1_000,
    until: later,
    next: `target limit ${base} LIMIT`,
  },
  retry_after: {
    seen: held('retry_after', 'the server answered 429 and sent Retry-After 3600'),
    text: 'the server answered 429 and sent Retry-After 3600',
    since: now - 1_000,
    until: later,
    next: `target release ${base}`,
  },
  circuit: {
    seen: closed('refused', 'the API answers 429 to everything'),
    text: 'the API answers 429 to everything; probing with one id from time to time, no id fails because of it',
    since: now - 60_000,
    next: `target release ${base}`,
  },
  outage: {
    seen: closed('trouble', 'the API answers 503 to everything'),
    text: 'the API answers 503 to everything; probing with one id from time to time, no id fails because of it',
    since: now - 60_000,
    next: `target release ${base}`,
  },
  run_quota: {
    seen: { run: { rate: parseRate('200/s,1000/day'), quotaUntil: later } },
    text: '--rate allows no more (1,000 a day)',
    until: later,
    next: "rate RUN 'N/s'",
  },
  run_rate: {
    seen: { run: { rate: parseRate('1/h'), nextPermitAt: later } },
    text: '--rate allows 1/h',
    until: later,
    next: "rate RUN 'N/s'",
  },
  retry: {
    seen: { nextTryAt: later },
    text: 'the ids left failed before and are retried then',
    until: later,
    next: null,
  },
};

describe('what holds a run back', () => {
  describe.each(causes)('%s', (why) => {
    const { seen, text, until = null, since = null, by = null, next } = table[why];
    const held = reading(seen);
    const [standing, ...others] = findStandings(held);
    const commands = (words: string) => words.replaceAll('RUN', snapshot().runId);

    it('is told with why, since, until, by whom, and the next command', () => {
      const facts = standingFacts(findStandings(held), toTypeAnywhere);
      const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString());
      const isCommand = next !== null && /^[a-z]/.test(next);
      expect(facts).toMatchObject({ why, since: iso(since), until: iso(until), by, also: [] });
      expect(facts!.text).toContain(text);
      expect(facts!.next).toBe(next === null ? null : `${isCommand ? 'expunge ' : ''}${commands(next)}`);
      expect(others).toEqual([]);
    });

    it('stands in the panel, its line, and the plan of a run that would meet it', () => {
      const sentence = standingText(standing!, now);
      const shown = snapshotOf(held);
      if (why !== 'preparing' && why !== 'planned' && why !== 'cancelling') {
        expect(panelText(shown, 500)).toContain(`${sentence}.`);
        expect(lineText(shown)).toContain(`${sentence}.`);
      }
      expect(sentence.toLowerCase()).toContain(text.split(';')[0]!.toLowerCase());
    });
  });

  it('is what only a person ends before what ends by itself, and the others are named', () => {
    const both = reading({ ...held('limit', 'used up'), stops: { ...nobody, alive: 1, target: stop } });
    expect(standingFacts(findStandings(both), toTypeAnywhere)).toMatchObject({ why: 'stop', also: ['limit'] });
  });

  it('is nothing while requests are sent, and for a run that has ended', () => {
    expect(findStandings(reading({ limiter: target() }))).toEqual([]);
    expect(findStandings(reading({ run: { state: 'completed' }, stops: { ...nobody, target: stop } }))).toEqual([]);
  });

  it('is not what holds one of two processes', () => {
    const file = { ...stop, by: 'file' as const };
    const stops = { ...nobody, alive: 2, processes: [file], tokenless: [{ reason: 'none', since: now }] };
    expect(findStandings(reading({ stops, limiter: target() }))).toEqual([]);
  });

  it('is not that of a process that cannot delete this run: a command deletes its own, a worker the detached ones', () => {
    const file = { ...stop, by: 'file' as const };
    const says = (run: string, stop: typeof file | null = null) => ({ run, stop, token: null });
    const why = (run: Partial<Run>, said: readonly ReturnType<typeof says>[]) => {
      const alive = said.length;
      const stops = { ...nobody, alive, processes: said.flatMap(({ stop }) => stop ?? []), said };
      return findStandings(reading({ stops, run, limiter: target() })).map((one) => one.why);
    };
    const own = { id: 'r1', detached: false };
    expect([why({ detached: true }, [says('r1')]), why(own, [says(''), says('r2')])]).toEqual([
      ['no_worker'],
      ['dead_command'],
    ]);
    expect([why({ detached: true }, [says('r1'), says('')]), why(own, [says('r2'), says('r1')])]).toEqual([[], []]);
    expect([why({ detached: true }, [says('', file), says('r1')]), why(own, [says('r1', file), says('')])]).toEqual([
      ['stop_file'],
      ['stop_file'],
    ]);
  });

  it('is a wait that the server asked for, not the stop file of one of two workers, though neither wants permits', () => {
    const file = { ...stop, by: 'file' as const };
    const said = [file, null].map((one) => ({ run: '', stop: one, token: null }));
    const limiter = { ...held('retry_after', 'asked for').limiter, processes: 0 };
    const both = reading({ stops: { ...nobody, alive: 2, processes: [file], said }, limiter });
    expect(findStandings(both).map((one) => one.why)).toEqual(['retry_after']);
  });

  it('is a stop file and a missing token where one of two workers has either', () => {
    const said = [
      { run: '', stop: { ...stop, by: 'file' as const }, token: null },
      { run: '', stop: null, token: { reason: 'none', since: now } },
    ];
    const stops = { target: null, alive: 2, processes: [said[0]!.stop!], tokenless: [said[1]!.token!], said };
    expect(findStandings(reading({ stops, limiter: target() })).map((one) => one.why)).toEqual([
      'stop_file',
      'no_token',
    ]);
  });

  it('is a dead command for an attended run and a missing worker for a detached one', () => {
    const why = (detached: boolean) =>
      findStandings(reading({ stops: nobody, run: { detached } })).map((one) => one.why);
    expect([why(true), why(false)]).toEqual([['no_worker'], ['dead_command']]);
  });
});
