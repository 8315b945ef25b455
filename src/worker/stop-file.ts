import { open } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { Stop } from '../limiter/stop.ts';
import { storedLine } from '../model/visible.ts';
import { systemCode } from '../system-errors.ts';

/** A file that stops this process while it exists. States: open → started → closed; after that the last result stays. */
export type StopFile = {
  /**
   * The stop, or null while the file doesn't exist. Before the first check, and while checks hang, the state is unknown, which also counts as a stop.
   */
  readonly stop: Stop | null;
  start(): void;
  close(): void;
};

type StopFileDeps = {
  /** Monotonic ms. */
  clock: () => number;
  /** ms since 1970. */
  now: () => number;
  /** Called when the file was created, removed or changed. */
  onChange(): void;
};

const checkEveryMs = 100;
const unknownAfterMs = 1_000;
const unknownReason = 'it is unknown whether the file exists';

/** Opens the stop file at `path`; null = there is no file, so there is never a stop. */
export function openStopFile(path: string | null, deps: StopFileDeps): StopFile {
  return path === null ? { stop: null, start() {}, close() {} } : new WatchedFile(path, deps);
}

/** A file that is checked ten times a second: notifications of the file system don't work on every mount, nor for a file in a new folder. */
class WatchedFile implements StopFile {
  readonly #path: string;
  readonly #deps: StopFileDeps;
  #timer: NodeJS.Timeout | null = null;
  #isChecking = false;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #reason: string | null = null;
  #at = 0;

  constructor(path: string, deps: StopFileDeps) {
    this.#path = path;
    this.#deps = deps;
  }

  get stop(): Stop | null {
    const { clock, now } = this.#deps;
    if (this.#reason !== null) return stopBy(this.#path, this.#reason, this.#at);
    return clock() - this.#checkedAt > unknownAfterMs ? stopBy(this.#path, unknownReason, now()) : null;
  }

  start(): void {
    this.#timer = setInterval(() => void this.#check(), checkEveryMs);
    void this.#check();
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    this.#checkedAt = Number.POSITIVE_INFINITY; // the last result stays
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const { clock, now, onChange } = this.#deps;
    const reason = await readReason(this.#path);
    this.#isChecking = false;
    if (this.#timer === null) return;
    this.#checkedAt = clock();
    if (reason === this.#reason) return;
    if (this.#reason === null) this.#at = now();
    this.#reason = reason;
    onChange();
  }
}

const maxBytes = 1_024;
const maxCharacters = 200;

/** Reads the present stop of this file; null if there is no file. Never throws. `now`: ms since 1970. */
export async function readStopFile(path: string, now: number): Promise<Stop | null> {
  const reason = await readReason(path);
  return reason === null ? null : stopBy(path, reason, now);
}

function stopBy(path: string, reason: string, at: number): Stop {
  return { by: 'file', who: `the file ${path} on ${hostname()}`, reason, at };
}

/** The text of the file in one line; null if there is no file. '' if it can't be read, which also counts as a stop. */
async function readReason(path: string): Promise<string | null> {
  try {
    const file = await open(path);
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes);
      return oneLine(buffer.toString('utf8', 0, bytesRead));
    } finally {
      await file.close();
    }
  } catch (error) {
    return ['ENOENT', 'ENOTDIR'].includes(systemCode(error)) ? null : '';
  }
}

function oneLine(text: string): string {
  return storedLine(text.replace(/\s+/g, ' '), maxCharacters);
}
