import { readFileSync } from 'node:fs';

/** CPU seconds (user and system) of the children of this process that have ended, with theirs. */
export function cpuOfEnded(): number {
  const { 13: user, 14: system } = statOf('self')!;
  return (Number(user) + Number(system)) / ticksPerSecond;
}

/** CPU seconds of a process that runs, and of its children, the ended ones as well; 0 for one that is gone. */
export function cpuOfTree(pid: number): number {
  const stat = statOf(pid);
  if (stat === null) return 0;
  const own = stat.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticksPerSecond;
  return childrenOf(pid).reduce((sum, child) => sum + cpuOfTree(child), own);
}

/** The most memory (VmHWM) that one process of a tree has had, in MB. */
export function peakRssOfTree(pid: number): number {
  const own = Number(/VmHWM:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) / 1024;
  return Math.max(own, ...childrenOf(pid).map(peakRssOfTree));
}

const ticksPerSecond = 100; // what Linux shows to programs on every machine

/** The fields of `stat` behind the name of the program: utime is 11, stime 12, those of ended children 13 and 14. */
function statOf(pid: number | 'self'): string[] | null {
  const text = read(`/proc/${pid}/stat`);
  return text === '' ? null : text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function childrenOf(pid: number): number[] {
  return read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
