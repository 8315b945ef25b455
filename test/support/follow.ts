import type { Running } from './processes.ts';
import { until } from './processes.ts';

type Row = { file: string; line: number; id: string; outcome: string; correction?: true };

/** What a reader of `report --follow` has, and from where it goes on; null = from the beginning. */
export type Received = {
  rows: Row[];
  corrections: Row[];
  from: string | null;
  summary: Record<string, unknown> | null;
};

export const nothingReceived: Received = { rows: [], corrections: [], from: null, summary: null };

/** What is known after one more text, which may be cut anywhere: its last line counts only with its end. */
export function receive(before: Received, text: string): Received {
  const now: Received = { ...before, rows: [...before.rows], corrections: [...before.corrections] };
  let [cursor, behind] = [before.from, 0];
  for (const line of text.split('\n').slice(0, -1)) {
    const entry = JSON.parse(line);
    if (entry.type === 'cursor') [cursor, behind] = [entry.cursor, 0];
    else if (entry.type === 'summary') now.summary = entry;
    else {
      (entry.correction ? now.corrections : now.rows).push(entry);
      behind++;
    }
  }
  return { ...now, from: behind === 0 ? cursor : `${cursor}+${behind}` };
}

const minCuts = 5;

/**
 * Follows a run by followers that are cut at random, each with a part of what it wrote received, until the summary is. Of the first five a part is
 * lost in any case. `start` begins one with these arguments, `cut` ends it.
 */
export async function followInPieces(
  start: (args: string[]) => Running,
  cut: (running: Running) => void,
  random: () => number,
): Promise<{ received: Received; cuts: number }> {
  let received = nothingReceived;
  for (let cuts = 0; ; cuts++) {
    const running = start(received.from === null ? [] : ['--from', received.from]);
    const bytes = Math.floor(random() * 200_000);
    await until('it has written so much, or all', () => running.isOver || running.stdout.length >= bytes, 120_000);
    if (!running.isOver) cut(running);
    const isCut = cuts < minCuts || !running.isOver;
    await running.ended;
    const end = isCut ? Math.floor(random() * (running.stdout.length + 1)) : running.stdout.length;
    received = receive(received, running.stdout.slice(0, end));
    if (received.summary !== null) return { received, cuts };
  }
}

/** Random numbers from 0 to 1, the same for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
}
