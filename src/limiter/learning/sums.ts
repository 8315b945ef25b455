import type { Claim } from './announced-window.ts';

/** The alarm of a process in which no request succeeds. `unreachable`: no connection; `trouble`: errors or no answers, but no success. */
export type Alarm = { kind: 'unreachable' | 'trouble'; why: string };

/** The reports of all processes since the last update; see target.lua.ts. */
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
  awayMs?: number; // how much later than usual the next sums may come, because Redis is far away
  released: number; // 1 = an operator has released the target
  alarm?: Alarm | null;
  claim?: Claim | null;
};
