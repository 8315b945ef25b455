import type { HistoryEntry } from './schedule.ts';

/** The result of an occurrence without a run, unless a guard reports it or a person asked for it. */
export type OccurrenceTrouble = 'failed' | 'missed' | 'skipped' | 'empty';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * The time in ms for which a number of occurrences with this trouble in a row counts as usual for the schedule, so that it is not reported again. A
 * run that takes longer than the time between two occurrences skips every second one. A folder to which files come once a week is empty on six days.
 */
const usualMs: Record<OccurrenceTrouble, number> = { failed: 0, missed: hourMs, skipped: 7 * dayMs, empty: 30 * dayMs };

function isTrouble(outcome: HistoryEntry['outcome']): outcome is OccurrenceTrouble {
  return outcome in usualMs;
}

/** The news in a new line of a history (newest first): its trouble, that its list came again, or null. Pure. */
export function findNews(history: readonly HistoryEntry[], { outcome, occurrences, at }: HistoryEntry): OccurrenceNews {
  const failed = occurrencesInARow(history, 'failed');
  if (failed > 0 && (outcome === 'started' || outcome === 'empty')) return { is: 'recovered', occurrences: failed };
  if (!isTrouble(outcome)) return null;
  const [now, ...earlier] = stretchesOf(history, outcome);
  const known = earlier.filter((stretch) => at - stretch.at < usualMs[outcome]);
  const usual = Math.max(0, ...known.map((stretch) => stretch.occurrences));
  return now!.occurrences <= usual && now!.occurrences + occurrences > usual
    ? { is: outcome, occurrences: now!.occurrences + occurrences }
    : null;
}

/** `occurrences`: the number of occurrences in a row with the trouble by then. */
type OccurrenceNews = { is: OccurrenceTrouble | 'recovered'; occurrences: number } | null;

/** The number of occurrences with this trouble since one last went well, whatever else came between. */
export function occurrencesInARow(history: readonly HistoryEntry[], trouble: OccurrenceTrouble): number {
  return stretchesOf(history, trouble)[0]!.occurrences;
}

/**
 * The stretches of a trouble, newest first, and when the last line of each was written. The first is the present stretch, which may have no
 * occurrence.
 */
function stretchesOf(
  history: readonly HistoryEntry[],
  trouble: OccurrenceTrouble,
): { occurrences: number; at: number }[] {
  const stretches = [{ occurrences: 0, at: 0 }];
  for (const { outcome, occurrences, at } of history) {
    const last = stretches.at(-1)!;
    if (outcome === trouble) {
      last.at ||= at;
      last.occurrences += occurrences;
    } else if (outcome === 'started' || outcome === 'refused' || outcome === 'empty')
      stretches.push({ occurrences: 0, at: 0 });
  }
  return stretches;
}
