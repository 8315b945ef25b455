import { idPath } from '../guard/check-id.ts';
import type { List } from '../input/with-list.ts';
import { pendingOf, type Run } from '../ledger/run.ts';
import type { Target } from '../ledger/target.ts';
import type { Plan } from '../terminal/plan-text.ts';
import { tokenSource } from '../token/open-token.ts';
import type { Invocation } from './command.ts';

/** What a run of the list would do, as it is shown before anything is sent. `existing`: the run that it would go on with. */
export function planOf(
  { config }: Invocation,
  target: Target,
  list: List,
  existing: Run | null,
  { learned, stop }: Pick<Plan, 'learned' | 'stop'>,
): Plan {
  const { spool, rejectsFile } = list;
  const { first } = spool;
  return {
    files: spool.files,
    rows: spool.rows,
    ids: spool.ids,
    duplicates: spool.duplicates,
    rejected: spool.rejectedByCode,
    rejectsFile,
    protected: spool.protected,
    limited: spool.limited ? (config.limit ?? null) : null,
    baseUrl: target.baseUrl,
    account: target.account,
    tokenSource: tokenSource(config),
    firstUrl: first === null ? null : target.baseUrl + idPath(first.resource, first.id),
    treat: existing?.treat ?? config.treat,
    expectAbsent: config.expectAbsent || (existing?.expectAbsent ?? false),
    rate: config.rate ?? existing?.rate ?? null,
    learned,
    maxConcurrency: config.maxConcurrency,
    stop,
    existing: existing && existingOf(existing),
  };
}

function existingOf(run: Run): Plan['existing'] {
  return { runId: run.id, state: run.state, reason: run.reason, left: pendingOf(run), who: run.who };
}
