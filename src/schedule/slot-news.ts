import type { HistoryEntry } from './schedule.ts';

/** What a slot without a run came to, where no guard tells it and nobody ordered it. */
export type SlotTrouble = 'failed' | 'missed' | 'skipped' | 'empty';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * For how long as many slots in a row are what the schedule is used to, so that they are not told again. A run that takes longer than the time
 * between two slots skips every second one, and a folder to which files come once a week is empty on six days.
 */
const usualMs: Record<SlotTrouble, number> = { failed: 0, missed: hourMs, skipped: 7 * dayMs, empty: 30 * dayMs };

function isTrouble(outcome: HistoryEntry['outcome']): outcome is SlotTrouble {
  return outcome in usualMs;
}

/** What is to be told of a line that comes to a history, newest first: its trouble, that its list came again, or null. Pure. */
export function newsOf(history: readonly HistoryEntry[], { outcome, slots, at }: HistoryEntry): SlotNews {
  const failed = slotsInARow(history, 'failed');
  if (failed > 0 && (outcome === 'started' || outcome === 'empty')) return { is: 'recovered', slots: failed };
  if (!isTrouble(outcome)) return null;
  const [now, ...earlier] = stretchesOf(history, outcome);
  const known = earlier.filter((stretch) => at - stretch.at < usualMs[outcome]);
  const usual = Math.max(0, ...known.map((stretch) => stretch.slots));
  return now!.slots <= usual && now!.slots + slots > usual ? { is: outcome, slots: now!.slots + slots } : null;
}

/** `slots`: how many in a row had the trouble by then. */
type SlotNews = { is: SlotTrouble | 'recovered'; slots: number } | null;

/** How many slots have had this trouble since the last successful one, whatever else came between. */
export function slotsInARow(history: readonly HistoryEntry[], trouble: SlotTrouble): number {
  return stretchesOf(history, trouble)[0]!.slots;
}

/** The stretches of a trouble, newest first, and when the last line of each was written. The first is that of now, which may have no slot. */
function stretchesOf(history: readonly HistoryEntry[], trouble: SlotTrouble): { slots: number; at: number }[] {
  const stretches = [{ slots: 0, at: 0 }];
  for (const { outcome, slots, at } of history) {
    const last = stretches.at(-1)!;
    if (outcome === trouble) {
      last.at ||= at;
      last.slots += slots;
    } else if (outcome === 'started' || outcome === 'refused' || outcome === 'empty')
      stretches.push({ slots: 0, at: 0 });
  }
  return stretches;
}
