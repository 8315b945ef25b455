/**
 * Tells at each call how much computing time this process used since the last one, as a share of the time that passed: 1 is one core. A
 * process that others keep from computing uses little, and isn't mistaken for a busy one. `nowMs`: monotonic.
 */
export function openOwnLoad(nowMs: number): (nowMs: number) => number {
  let last = { nowMs, usedMs: usedMs() };
  return (nowMs) => {
    const before = last;
    last = { nowMs, usedMs: usedMs() };
    return (last.usedMs - before.usedMs) / Math.max(1, nowMs - before.nowMs);
  };
}

function usedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
