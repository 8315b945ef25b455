import { type AuditEntry, auditLength } from '../ledger/audit.ts';
import { plainLine } from './style.ts';
import { columns } from './table.ts';

/** The last entries of a trail (the oldest first), or all, in aligned lines: when, what, by whom, why. */
export function auditText(trail: readonly AuditEntry[], shown = trail.length): string[] {
  if (trail.length === 0 || shown === 0) return [];
  const isWhole = trail[0]!.action === 'submit' && trail.length <= auditLength; // else the first start may have gone
  const first = isWhole ? trail.findIndex(({ action }) => action === 'start') : -1;
  const rows = trail.map((entry, i) => rowOf(entry, i === first));
  return columns(rows.slice(-shown)).split('\n');
}

/** The facts that an action has beside the common ones stand behind it: `rate 200/s`, `halt forbidden`. */
function rowOf({ at, action, by, who, reason, ...facts }: AuditEntry, isFirstStart: boolean): string[] {
  const what = [action === 'start' && !isFirstStart ? 'go on' : action, ...Object.entries(facts).map(factText)]
    .filter(Boolean)
    .join(' ');
  const when = `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  return [when, what, who || by, reason].map((cell) => plainLine(cell));
}

/** The name of a fact is left out where its value tells enough. */
function factText([name, value]: [string, unknown]): string {
  if (value === true) return name;
  if (name === 'burst') return value === null ? '' : `burst ${value}`;
  return value === null ? 'none' : String(value);
}
