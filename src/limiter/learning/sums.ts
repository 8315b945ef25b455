import type { Claim } from './announced-window.ts';

/** A process finds that no request succeeds. `unreachable`: no connection; `trouble`: the API answers, or does not, but nothing succeeds. */
export type Alarm = { kind: 'unreachable' | 'trouble'; why: string };

/** What all processes reported since the last update; see target.lua.ts. */
export type Sums = {
  now: number;
  blockedMs: number;
  holdUntil: number;
  accepted: number;
  refused: number;
  trouble: number;
  currentAccepted: number;
  currentRefused: number;
  currentTrouble: number;
  sent: number;
  latencies: number;
  latencySum: number;
  starved: number;
  busy: number;
  reports: number;
  lost: number;
  recall: number;
  most: number;
  ceiling: number;
  pinned: number;
  released: number; // 1 = an operator has released whatever held it
  alarm?: Alarm | null;
  claim?: Claim | null;
};
