import type { List } from '../input/with-list.ts';
import { type Plan, planText } from '../terminal/plan-text.ts';
import { styleOf } from '../terminal/style.ts';
import type { Invocation } from './command.ts';
import { jsonLines } from './json-lines.ts';

/** Shows the plan and sends nothing; needs neither a token nor Redis. */
export async function showDryRun(
  { stdout, stderr, options }: Invocation,
  { spool }: List,
  plan: Plan,
): Promise<number> {
  stderr.write(`${planText(plan, styleOf(stderr))}\n${dryRunEnd(plan.ids)}\n`);
  const { rows, ids, duplicates, rejected, sha256 } = spool;
  const facts = {
    rows,
    ...ids,
    duplicate: duplicates,
    protected: spool.protected,
    protected_read: spool.protectedList?.ids ?? null,
    rejected,
    sha256,
    first_url: plan.firstUrl,
  };
  jsonLines(stdout, options.json)('plan', { dry_run: true, base_url: plan.baseUrl, ...facts });
  return 0;
}

/** What stands below the plan: how to go on, where there is anything to delete. */
export function dryRunEnd(ids: Plan['ids']): string {
  if (ids.annotations + ids.views === 0) return 'Dry run: nothing was sent, and the list holds no id to delete.';
  return 'Dry run: nothing was sent.\n  Delete them: the same command without --dry-run';
}
