import { performance } from 'node:perf_hooks';

const busyShare = 0.85; // of the time the event loop was at work, or had no computing time to be
const lateMs = 20; // so late a call of every 100 ms comes where others take the processor
const callEveryMs = 100;

/**
 * Tells at each call whether this process had next to no time to spare since the last one: its event loop was at work all the time (which
 * includes the time that others took the processor from it), or the call itself comes late. Its latencies then say little about the server.
 * `nowMs`: monotonic.
 */
export function watchOwnLoad(nowMs: number): (nowMs: number) => boolean {
  let last = { nowMs, loop: performance.eventLoopUtilization() };
  return (nowMs) => {
    const before = last;
    last = { nowMs, loop: performance.eventLoopUtilization() };
    const passedMs = nowMs - before.nowMs;
    const isLate = passedMs >= callEveryMs + lateMs && passedMs < 5 * callEveryMs;
    return isLate || performance.eventLoopUtilization(last.loop, before.loop).utilization >= busyShare;
  };
}
