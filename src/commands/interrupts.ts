import type { Invocation } from './command.ts';

/** The first SIGINT, SIGTERM or SIGHUP asks a command to end; a second one ends the process at once. */
export type Interrupts = {
  /** Aborted at the first signal. */
  signal: AbortSignal;
  /** 130 or 143 once a signal has come, otherwise null. */
  exit(): number | null;
  dispose(): void;
};

const exits = { SIGINT: 130, SIGTERM: 143, SIGHUP: 143 } as const;
type Signal = keyof typeof exits;

const checkEveryMs = 500;
const parent = process.ppid;

/**
 * Calls `onFirst` at the first signal, before it aborts. The second signal skips all clean-up; nothing depends on that clean-up.
 *
 * npm and npx put a shell in front that exits on SIGTERM without forwarding it: under them, the end of the parent counts as SIGTERM. Elsewhere it
 * does not, since a command in the background outlives its parent.
 */
export function listenForInterrupts(
  { signals: source, env }: Pick<Invocation, 'signals' | 'env'>,
  onFirst: (signal: Signal) => void,
): Interrupts {
  const controller = new AbortController();
  let exit: number | null = null;
  const handle = (signal: Signal) => {
    if (exit !== null) source.exit(exits[signal]);
    exit = exits[signal];
    onFirst(signal);
    controller.abort();
  };
  const signals = Object.keys(exits) as Signal[];
  for (const signal of signals) source.on(signal, handle);
  const byNpm = env.npm_execpath !== undefined;
  const parentPoll = setInterval(() => {
    if (byNpm && exit === null && process.ppid !== parent) handle('SIGTERM');
  }, checkEveryMs).unref();
  return {
    signal: controller.signal,
    exit: () => exit,
    dispose: () => {
      clearInterval(parentPoll);
      for (const signal of signals) source.off(signal, handle);
    },
  };
}

/**
 * The value of `work`, or undefined if it fails or the signal comes first. A command to a hanging Redis may never end, and an interrupt does not wait
 * for it.
 */
export async function orAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T | undefined> {
  let stop = () => {};
  const aborted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([work, aborted]);
  } catch {
    return undefined;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
