import type { HistoryEntry } from './schedule.ts';

/** The result of a slot without a run, unless a guard reports it or a person ordered it. */
export type SlotTrouble = 'failed' | 'missed' | 'skipped' | 'empty';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * The time in ms for which a number of slots with this trouble in a row counts as usual for the schedule, so that it is not reported again.
 * A run that
 * takes longer than the time between two slots skips every second one. A folder to which files come once a week is empty on six days.
 */
const usualMs: Record<SlotTrouble, number> = { failed: 0, missed: hourMs, skipped: 7 * dayMs, empty: 30 * dayMs };

function isTrouble(outcome: HistoryEntry['outcome']): outcome is SlotTrouble {
  return outcome in usualMs;
}

/** The news in a new line of a history (newest first): its trouble, that its list came again, or null. Pure. */
export function newsOf(history: readonly HistoryEntry[], { outcome, slots, at }: HistoryEntry): SlotNews {
  const failed = slotsInARow(history, 'failed');
  if (failed > 0 && (outcome === 'started' || outcome === 'empty')) return { is: 'recovered', slots: failed };
  if (!isTrouble(outcome)) return null;
  const [now, ...earlier] = stretchesOf(history, outcome);
  const known = earlier.filter((stretch) => at - stretch.at < usualMs[outcome]);
  const usual = Math.max(0, ...known.map((stretch) => stretch.slots));
  return now!.slots <= usual && now!.slots + slots > usual ? { is: outcome, slots: now!.slots + slots } : null;
}

/** `slots`: the number of slots in a row with the trouble by then. */
type SlotNews = { is: SlotTrouble | 'recovered'; slots: number } | null;

/** The number of slots with this trouble since one last went well, whatever else came between. */
export function slotsInARow(history: readonly HistoryEntry[], trouble: SlotTrouble): number {
  return stretchesOf(history, trouble)[0]!.slots;
}

/** The stretches of a trouble, newest first, and when the last line of each was written. The first is the present stretch, which may have no slot. */
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
