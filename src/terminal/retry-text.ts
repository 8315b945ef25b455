import type { Run } from '../ledger/run.ts';

const shownRuns = 3;

/** The run that a run retries, and the runs that retry it: up to two lines for people. */
export function retryLines({ retryOf, retriedBy }: Pick<Run, 'retryOf' | 'retriedBy'>): string[] {
  const more = retriedBy.length > shownRuns ? ` and ${retriedBy.length - shownRuns} before` : '';
  return [
    ...(retryOf === '' ? [] : [`retry of run ${retryOf}`]),
    ...(retriedBy.length === 0 ? [] : [`retried by run ${retriedBy.slice(-shownRuns).join(', ')}${more}`]),
  ];
}
