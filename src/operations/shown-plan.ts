import { createReadStream } from 'node:fs';
import { parse } from 'csv-parse';
import { shapeFacts } from '../input/id-shapes.ts';
import { sumIds } from '../model/resource.ts';
import { forecastFacts } from '../terminal/forecast-text.ts';
import type { Plan } from '../terminal/plan-text.ts';
import type { MadePlan } from './make-plan.ts';
import { changedRules } from './sealed-plan.ts';

/** A rejected row of a list, and the reason, also in words. */
export type RejectedRow = { line: number; id: string; code: string; reason?: string };

const shownRows = 20;
const shownLength = 200;

/** The first rows in a file of rejected rows; none without a file. */
export async function readRejectedRows(path: string | null): Promise<RejectedRow[]> {
  if (path === null) return [];
  const rows: RejectedRow[] = [];
  const file = createReadStream(path);
  try {
    for await (const { line, id_safe: id, code, reason } of file.pipe(parse({ columns: true, to: shownRows })))
      rows.push({ line: Number(line), id: id.slice(0, shownLength), code, reason });
  } finally {
    file.destroy();
  }
  return rows;
}

/** A plan as the API shows it, without what only its keeper knows. */
export function shownPlan({ plan, shown }: MadePlan, rejected_samples: RejectedRow[]) {
  const { baseUrl: target, account } = shown;
  const record: Plan = { ...shown, rejectsFile: null, tokenSource: 'its workers' };
  return {
    target,
    account,
    confirm: sumIds(shown.ids),
    counts: { rows: shown.rows, ...shown.ids, ...shown.settled },
    rejected: shown.rejected,
    samples: shown.samples,
    looks: shapeFacts(shown.shapes),
    first: shown.firstUrl === null ? null : { url: shown.firstUrl },
    requests: plan.requests,
    expected: forecastFacts(shown.forecast),
    starts_after_seconds: Math.max(shown.graceMs, shown.minGrace?.ms ?? 0) / 1_000,
    rules: plan.rules,
    changed_rules: changedRules(plan),
    protected_read: shown.protectedRead,
    record,
    planned_by: plan.planned_by,
    planned_at: plan.planned_at,
    approve_by: plan.approve_by,
    reason: plan.reason,
    rejected_samples,
  };
}
