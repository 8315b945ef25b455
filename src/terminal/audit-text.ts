import type { AuditEntry } from '../ledger/audit.ts';
import { plainLine } from './style.ts';
import { columns } from './table.ts';

/** The entries, newest first, in aligned lines: when (UTC), what, by whom, why. */
export function auditText(entries: readonly AuditEntry[]): string[] {
  if (entries.length === 0) return [];
  const isWhole = entries.some(({ action }) => action === 'submit'); // old entries go when there are many
  const first = isWhole ? entries.findLastIndex(({ action }) => action === 'start') : -1;
  return columns(entries.map((entry, i) => rowOf(entry, i === first))).split('\n');
}

/** The facts that an action has beside the common ones stand behind it: `rate 200/s`, `halt forbidden`. */
function rowOf({ at, action, by, who, reason, ...facts }: AuditEntry, isFirstStart: boolean): string[] {
  const what = [action === 'start' && !isFirstStart ? 'go on' : action, ...Object.entries(facts).map(factText)]
    .filter(Boolean)
    .join(' ');
  const when = new Date(at).toISOString().slice(0, 19).replace('T', ' ');
  return [when, what, who || by, reason].map((cell) => plainLine(cell));
}

/** The name of a fact is left out where its value tells enough. */
function factText([name, value]: [string, unknown]): string {
  if (value === true) return name;
  if (name === 'burst') return value === null ? '' : `burst ${value}`;
  return value === null ? 'none' : String(value);
}
