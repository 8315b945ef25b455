import { createRequire } from 'node:module';
import { describeActivity, lineText, panelText } from './panel.ts';
import { bareOutput, safeText } from './safe-output.ts';
import { countSettled, type Snapshot } from './snapshot.ts';
import { isTerminal, styleOf } from './style.ts';

const redrawMs = 250;
const lineEveryMs = 10_000;
const sameLineEveryMs = 3_600_000;

/**
 * Shows a run on stderr until it is stopped: a panel on a terminal; elsewhere a line every ten seconds while the run changes, and one per hour while
 * it does not.
 */
export class LivePanel {
  readonly #show: (snapshot: Snapshot) => void;
  readonly #end: () => void;
  readonly #everyMs: number;
  readonly #take: () => Snapshot;
  #timer: NodeJS.Timeout | null = null;

  /** `take` returns the current snapshot; it is called for each panel or line. */
  constructor(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv, take: () => Snapshot) {
    const drawing = isTerminal(stream, env) ? panelOn(stream) : linesOn(stream);
    this.#show = drawing.show;
    this.#end = drawing.end;
    this.#everyMs = drawing.everyMs;
    this.#take = take;
  }

  /** Starts the display. Repeating it changes nothing. A panel appears at once, the first line after ten seconds, so that short runs write none. */
  start(): void {
    if (this.#timer) return;
    if (this.#everyMs === redrawMs) this.#show(this.#take());
    this.#timer = setInterval(() => this.#show(this.#take()), this.#everyMs);
  }

  /** Leaves the last panel on the screen and shows the cursor again; later lines appear below. Repeating it changes nothing. */
  stop(): void {
    if (!this.#timer) return;
    clearInterval(this.#timer);
    this.#timer = null;
    if (this.#everyMs === redrawMs) this.#show(this.#take());
    this.#end();
  }
}

type Drawing = { show: (snapshot: Snapshot) => void; end: () => void; everyMs: number };

function panelOn(stream: NodeJS.WriteStream): Drawing {
  const update = redrawOn(stream);
  const style = styleOf(stream);
  // One column stays free: a full last column makes some terminals wrap.
  const show = (snapshot: Snapshot) => update.show(panelText(snapshot, (stream.columns || 80) - 1, style));
  return { show, end: update.end, everyMs: redrawMs };
}

function linesOn(stream: NodeJS.WriteStream): Drawing {
  const say = (line: string) => void stream.write(`${line}\n`);
  const isNews = newsFilter();
  const show = (snapshot: Snapshot) => {
    if (isNews(standingOf(snapshot))) say(lineText(snapshot));
  };
  return { show, end: () => {}, everyMs: lineEveryMs };
}

/** The standing parts of a line: without its remaining waiting time, and the time that the run may still take. */
function standingOf(snapshot: Snapshot): string {
  const activity = describeActivity(snapshot).replace(/\d[\d.,:]*( (s|min|h|days?)\b)?/g, '');
  return `${snapshot.state} ${countSettled(snapshot)} ${activity}`;
}

/** Returns a function that says whether a text has changed since it was last shown, or was last shown an hour ago. */
function newsFilter(): (what: string) => boolean {
  let said = { what: '', at: Number.NEGATIVE_INFINITY };
  return (what) => {
    const at = performance.now();
    if (what === said.what && at - said.at < sameLineEveryMs) return false;
    said = { what, at };
    return true;
  };
}

const quietMs = 1_000;

/** A progress display that runs until it is stopped. */
export type Progress = { stop(): void };

/**
 * Shows `text` for work that lasts longer than a second: on a terminal, one line that is redrawn and disappears at the end; elsewhere, a line every
 * ten seconds while it changes, then one per hour.
 */
export function startProgress(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv, text: () => string): Progress {
  if (!isTerminal(stream, env)) {
    const isNews = newsFilter();
    const timer = setInterval(() => {
      const line = text();
      if (isNews(line)) stream.write(`${line}\n`);
    }, lineEveryMs);
    return { stop: () => clearInterval(timer) };
  }
  const update = redrawOn(stream);
  const startedAt = performance.now();
  const timer = setInterval(() => {
    if (performance.now() - startedAt >= quietMs) update.show(text());
  }, redrawMs);
  return {
    stop: () => {
      clearInterval(timer);
      update.clear();
      update.end();
    },
  };
}

const require = createRequire(import.meta.url);

/** Draws text over the last text. Loaded only on a terminal, because loading it takes a tenth of the start. */
function redrawOn(stream: NodeJS.WriteStream) {
  const { createLogUpdate } = require('log-update') as typeof import('log-update');
  const update = createLogUpdate(bareOutput(stream)); // a raw stream, because it moves the cursor
  return {
    show: (text: string) => update(safeText(text)),
    clear: () => update.clear(),
    end: () => update.done(),
  };
}
