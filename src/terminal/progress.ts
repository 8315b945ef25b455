import { lineEveryMs, redrawMs } from './live-panel.ts';
import { redrawOn } from './redraw.ts';
import { isTerminal } from './style.ts';

const quietMs = 1_000;

/** Something that shows how far a piece of work is, until it is stopped. */
export type Progress = { stop(): void };

/**
 * Shows `text` for work that lasts longer than a second: one line that is redrawn on a terminal and disappears at the end, elsewhere
 * a line every ten seconds.
 */
export function startProgress(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv, text: () => string): Progress {
  if (!isTerminal(stream, env)) {
    const timer = setInterval(() => stream.write(`${text()}\n`), lineEveryMs);
    return { stop: () => clearInterval(timer) };
  }
  const update = redrawOn(stream);
  const startedAt = performance.now();
  const timer = setInterval(() => {
    if (performance.now() - startedAt >= quietMs) update(text());
  }, redrawMs);
  return {
    stop: () => {
      clearInterval(timer);
      update.clear();
      update.done();
    },
  };
}
