import { performance } from 'node:perf_hooks';

/** Tells at each call which share of the time since the last one this process was at work, 0 to 1. */
export function openOwnLoad(): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const before = last;
    last = performance.eventLoopUtilization();
    return performance.eventLoopUtilization(last, before).utilization;
  };
}
