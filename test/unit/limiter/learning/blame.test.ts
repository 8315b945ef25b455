import { describe, expect, it } from 'vitest';
import { control, type TargetControl } from '../../../../src/limiter/learning/control.ts';
import type { Sums } from '../../../../src/limiter/learning/sums.ts';
import { blameErrors } from '../../../../src/limiter/learning/throttling-errors.ts';
import { sums } from '../../../support/sums.ts';
import { seeded } from '../../../support/zoo/world.ts';

type Answers = Pick<Sums, 'accepted' | 'refused' | 'trouble'>;
/** What becomes of so many requests that arrive within a tenth of a second. */
type Server = (requests: number) => Answers;

/** Lets so many a second through, a tenth of them in each tenth of a second, and answers a share of all requests, whatever their rate, with `background`. */
function bucket(perSecond: number, share = 0, background: 'refused' | 'trouble' = 'refused'): Server {
  const random = seeded(1);
  return (requests) => {
    let tokens = perSecond / 10;
    const answers = { accepted: 0, refused: 0, trouble: 0 };
    for (let n = 0; n < requests; n++) {
      if (random() < share) answers[background]++;
      else if (tokens-- >= 1) answers.accepted++;
      else answers.refused++;
    }
    return answers;
  };
}

/** The same without a background, which answers what is too much with errors. */
const throttlesByErrors = (perSecond: number): Server => {
  const ask = bucket(perSecond);
  return (requests) => {
    const { accepted, refused } = ask(requests);
    return { accepted, refused: 0, trouble: refused };
  };
};

/** Uses the whole rate, and looks ten times a second; every state, and what was answered before it. */
function play(server: Server, seconds: number, begin: TargetControl = control(null, sums({ now: 0 }))) {
  const states: { state: TargetControl; answers: Answers }[] = [];
  let [state, due, now] = [begin, 0, begin.rate.lookedAtMs];
  for (let look = 0; look < 10 * seconds; look++) {
    now += 100;
    due += state.rate.rate / 10;
    const answers = server(Math.floor(due));
    due -= Math.floor(due);
    state = control(state, sums({ now, ...answers }));
    states.push({ state, answers });
  }
  return states;
}

/** A target whose limit of 300/s was found. */
const known = () => last(play(bucket(300), 20));
const last = (run: ReturnType<typeof play>) => run.at(-1)!.state;
const perSecond = (run: ReturnType<typeof play>, kind: keyof Answers) =>
  run.reduce((all, { answers }) => all + answers[kind], 0) / (run.length / 10);
const trialsIn = (run: ReturnType<typeof play>) =>
  run.filter(({ state }, n) => state.blame.trial && !run[n - 1]?.state.blame.trial);

describe('refusals at random', () => {
  it.each([0.01, 0.02, 0.05])('of %d are found out, and the limit behind them is used', (share) => {
    const run = play(bucket(300, share), 90, known());
    expect(trialsIn(run).length).toBeGreaterThan(0);
    expect(last(run).blame.background).toBeGreaterThan(share / 3);
    expect(perSecond(run.slice(-300), 'accepted')).toBeGreaterThan(0.88 * 300);
    expect(perSecond(run.slice(-300), 'refused')).toBeLessThan(3 * share * 300);
  });

  it('of 2 percent keep the rate down where no trial can be: what is tested here is the verdict', () => {
    const state = known();
    const never = { ...state, blame: { ...state.blame, restUntilMs: Number.MAX_SAFE_INTEGER } };
    const run = play(bucket(300, 0.02), 60, never);
    expect(trialsIn(run)).toEqual([]);
    expect(perSecond(run.slice(-300), 'accepted')).toBeLessThan(0.8 * 300);
  });

  it('do not hide the limit for good, which would let the rate rise without end', () => {
    for (const share of [0.02, 0.05]) {
      const end = play(bucket(300, share), 300, known()).slice(-600);
      expect(perSecond(end, 'refused')).toBeLessThan(3 * share * 300);
      expect(last(end).rate.rate).toBeLessThan(1.2 * 300);
    }
  });

  it('that end are no longer expected', () => {
    const noisy = last(play(bucket(300, 0.02), 60, known()));
    expect(noisy.blame.background).toBeGreaterThan(0.005);
    const calm = play(bucket(300), 120, noisy);
    expect(last(calm).blame.background).toBeLessThan(noisy.blame.background / 2);
  });
});

describe('refusals about the rate', () => {
  it('are not forgiven', () => {
    const run = play(bucket(300), 120);
    expect(run.every(({ state }) => state.blame.background === 0)).toBe(true);
    expect(perSecond(run.slice(-600), 'refused')).toBeLessThan(0.02 * 300);
  });

  it('of a limit that falls are not taken for the background, however far it falls', () => {
    for (const fallen of [270, 200, 150, 30]) {
      const before = last(play(bucket(300), 40));
      const run = play(bucket(fallen), 60, before);
      expect(run.every(({ state }) => state.blame.background === 0)).toBe(true);
      const end = run.slice(-200);
      expect(perSecond(end, 'accepted')).toBeGreaterThan(0.9 * fallen);
      expect(perSecond(end, 'refused')).toBeLessThan(0.05 * fallen);
    }
  });
});

describe('a limit that falls to a tenth', () => {
  it('is followed at once: more than half of the answers are refused, which is no question of whose fault it is', () => {
    const run = play(bucket(100), 20, last(play(bucket(1_000), 40)));
    expect(trialsIn(run)).toEqual([]);
    expect(perSecond(run.slice(-150), 'accepted')).toBeGreaterThan(90);
  });
});

describe('errors', () => {
  it('that go on at a lower rate leave the limit that was known as it was: nothing is doubled', () => {
    const run = play(bucket(300, 0.2, 'trouble'), 60, last(play(bucket(300), 40)));
    expect(trialsIn(run).length).toBeGreaterThan(0);
    expect(run.map(({ state }) => state.rate.phase)).not.toContain('seek');
  });

  it('that a lower rate ends count as throttling from then on', () => {
    const run = play(throttlesByErrors(200), 60);
    expect(last(run).blame.errors.countUntilMs).toBeGreaterThan(60_000);
    const end = run.slice(-300);
    expect(perSecond(end, 'accepted')).toBeGreaterThan(0.9 * 200);
    expect(perSecond(end, 'trouble')).toBeLessThan(0.05 * 200);
  });

  it('that go on at a lower rate say nothing about it, and it comes back', () => {
    const run = play(bucket(300, 0.2, 'trouble'), 60);
    expect(trialsIn(run).map(({ state }) => state.blame.trial?.cause)).toContain('trouble');
    expect(last(run).blame.errors.countUntilMs).toBe(0);
    expect(Math.max(...run.slice(-300).map(({ state }) => state.rate.rate))).toBeGreaterThan(280);
  });

  it('that were gone by chance when the rate was lowered are exempt once three come at half of it', () => {
    const begin = known();
    const { rate, blame } = begin;
    const errors = blameErrors(blame.errors, 2.5 * rate.rate, rate.lookedAtMs);
    const blamed = { ...begin, blame: { ...blame, errors } };
    const seen = (trouble: number, ceiling = 0) => {
      const beforeCeiling = ceiling > 0 ? { rate: { ...rate, low: 10 * ceiling }, sinceMs: 0 } : null;
      const now = rate.lookedAtMs + 100;
      return control({ ...blamed, beforeCeiling }, sums({ now, accepted: 27, trouble, ceiling }));
    };
    expect(seen(2).blame.errors.countUntilMs).toBeGreaterThan(0);
    expect(seen(3, rate.rate).blame.errors.countUntilMs).toBeGreaterThan(0); // a ceiling made it low
    const after = seen(3);
    expect(after).toMatchObject({ blame: { errors: { countUntilMs: 0 } }, rate: { phase: 'seek' } });
    expect(after.rate.rate).toBeCloseTo(2.5 * rate.rate);
    expect(blameErrors(after.blame.errors, 300, after.rate.lookedAtMs).countUntilMs).toBe(0); // not again at once
  });

  it('that are a tenth of the answers by chance are no reason for a trial: six of sixty may come of two in a hundred', () => {
    const trialAfter = (trouble: number, accepted: number) => {
      const begin = known();
      const blame = { ...begin.blame, recent: { ...begin.blame.recent, answers: 0, accepted: 0 } };
      const seen = sums({ now: begin.rate.lookedAtMs + 100, accepted, trouble });
      return control({ ...begin, blame }, seen).blame.trial?.cause ?? null;
    };
    expect([trialAfter(6, 54), trialAfter(30, 120)]).toEqual([null, 'trouble']);
  });

  it('in all answers are no question of the rate: the first three do not end everything', () => {
    const state = last(play(() => ({ accepted: 0, refused: 0, trouble: 3 }), 0.1));
    expect(state.blame.trial).toBeNull();
    expect(state.rate.rate).toBeGreaterThanOrEqual(20);
  });
});

describe('a trial', () => {
  const trying = play(bucket(300, 0.05), 60).find(({ state }) => state.blame.trial)!.state;

  it('lowers the rate in a new epoch, and ends after a minute if there are too few answers', () => {
    const { trial } = trying.blame;
    expect(trying.rate.rate).toBeLessThan(0.8 * trial!.rate.low);
    expect(trying.epoch).toBeGreaterThan(1);
    const idle = control(trying, sums({ now: trial!.sinceMs + 60_001 }));
    expect(idle.blame.trial).toBeNull();
  });

  it('is given up where nothing is accepted any more', () => {
    const now = trying.rate.lookedAtMs + 100;
    const out = control(trying, sums({ now, alarm: { kind: 'unreachable', why: 'connection refused' } }));
    expect([out.closed?.kind, out.blame.trial]).toEqual(['unreachable', null]);
  });
});
