import cronstrue from 'cronstrue';
import type { HistoryEntry } from '../schedule/history.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { type SlotWords, slotWords } from '../schedule/slot-words.ts';
import { nextSlot, nextSlots, type Timing } from '../schedule/slots.ts';
import { plainLine } from './style.ts';
import { columns } from './table.ts';
import { count, plural, roughly } from './words.ts';

/** `At 03:00, Europe/Berlin`. */
function whenText({ cron, tz }: Timing): string {
  const words = cronstrue.toString(cron, { use24HourTimeFormat: true, throwExceptionOnParseError: false });
  return `${/^An error/.test(words) ? cron : words}, ${tz}`;
}

const overlapWords = {
  skip: 'If the last run has not ended, a slot is skipped.',
  'queue-one': 'If the last run has not ended, one slot waits for it, and further ones are skipped.',
  'cancel-other': 'If the last run has not ended, it is cancelled.',
};

/** What `schedule add` has done. */
export function addedText(done: 'added' | 'same' | 'changed', schedule: Schedule, now: number): string {
  const { name, from, settings, overlap } = schedule;
  const next = nextSlots(schedule, now, 3).map((slot) => slotWords(schedule.tz, slot).local);
  const what = settings.resource ?? `ids by ${settings.resourceColumn}`;
  return [
    `Schedule ${name} ${{ added: 'added', same: 'is there already, exactly so', changed: 'changed' }[done]}: ${whenText(schedule)}; ${what} from ${from}, at most ${count(Number(settings.maxDeletes))} ids a run.`,
    `  Next  ${next.join(' · ')}`,
    `  ${overlapWords[overlap]}`,
    `  Try it  expunge schedule run ${name} --dry-run`,
    ...(schedule.state === 'paused' ? [`  It is paused. Go on: expunge schedule resume ${name}`] : []),
  ].join('\n');
}

/** The next runs, a line each. */
export function previewText(schedule: Schedule, slots: SlotWords[]): string {
  const lines = slots.map(({ local, utc, note }) => {
    return `  ${local}${schedule.tz === 'UTC' ? '' : ` · ${utc}`}${note && ` (${note})`}`;
  });
  const paused =
    schedule.state === 'paused' ? [`  It is paused: ${plainLine(schedule.reason) || 'no reason given'}`] : [];
  return [`${schedule.name}: ${whenText(schedule)}`, ...lines, ...paused].join('\n');
}

type Listed = { schedule: Schedule; history: HistoryEntry[] };

/** The schedules as a table, and below it why some are paused. */
export function listText(all: Listed[], now: number): string {
  if (all.length === 0) return 'No schedules. Add one: expunge schedule add NAME --cron "0 3 * * *" --from SOURCE …';
  const rows = all.map(({ schedule, history }) => [
    ...[schedule.name, schedule.state, whenText(schedule)],
    schedule.state === 'active' ? slotWords(schedule.tz, nextSlot(schedule, now)).local : '-',
    history[0] === undefined ? '-' : lastText(history[0]),
  ]);
  const paused = all
    .filter(({ schedule }) => schedule.state === 'paused')
    .map(({ schedule }) => pausedText(schedule, now));
  return [columns([['NAME', 'STATE', 'WHEN', 'NEXT', 'LAST'], ...rows]), ...paused].join('\n');
}

function pausedText({ name, reason, who, changedAt }: Schedule, now: number): string {
  const why = plainLine(reason) || 'no reason given';
  return `  ${name} was paused ${roughly(now - changedAt)} ago by ${who}: ${why}\n    Go on: expunge schedule resume ${name}`;
}

function lastText({ outcome, slots, reason, run, ended, rows }: HistoryEntry): string {
  if (outcome === 'started' && ended === null) return `run ${run}, ${plural(rows ?? 0, 'rows')}`;
  if (outcome === 'started' && ended !== null) {
    const left = ended.left > 0 ? `, ${count(ended.left)} not` : '';
    return `${ended.state}: ${count(ended.deleted + ended.gone)} deleted or gone${left} (${run})`;
  }
  const what = slots > 1 ? `${outcome} ${plural(slots, 'slots')}` : outcome;
  return reason === '' ? what : `${what}: ${plainLine(reason)}`;
}

/** What a steering verb has done. */
export function steeredText(action: 'pause' | 'resume' | 'remove', schedule: Schedule, now: number): string {
  const { name } = schedule;
  if (action === 'pause')
    return `Paused schedule ${name}: it makes no more runs; one under way goes on.\n  Go on: expunge schedule resume ${name}`;
  if (action === 'remove') return `Removed schedule ${name}; its runs stay.`;
  const next = slotWords(schedule.tz, nextSlot(schedule, now)).local;
  const waived =
    schedule.pausedBy === '' || schedule.pausedBy === 'too_many'
      ? ''
      : '\n  The next list passes the guard that paused it; --max-deletes holds.';
  return `Resumed schedule ${name}: next ${next}.${waived}`;
}
