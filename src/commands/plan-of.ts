import { readChunks } from '../input/chunk-ids.ts';
import { formatOf } from '../input/input-options.ts';
import { stdinName } from '../input/open-inputs.ts';
import type { Spool } from '../input/spool.ts';
import type { List } from '../input/with-list.ts';
import type { ListedRun } from '../ledger/list-runs.ts';
import { isSealed, pendingOf, type Run } from '../ledger/run.ts';
import { idPath } from '../model/check-id.ts';
import type { Target } from '../model/target.ts';
import type { Plan } from '../terminal/plan-text.ts';
import { tokenSource } from '../token/open-token.ts';
import type { Invocation } from './command.ts';

/** What is known of the list in Redis: the run that it would go on with, its last run, and unfinished runs of the same files. */
type Known = Pick<Plan, 'learned' | 'stop'> & {
  existing: Run | null;
  isJoined: boolean;
  last: Run | null;
  beside: readonly ListedRun[];
};

export const nothingKnown: Known = {
  learned: null,
  stop: null,
  existing: null,
  isJoined: false,
  last: null,
  beside: [],
};

/** What a run of the list would do, as it is shown before anything is sent. */
export function planOf({ config, env }: Invocation, target: Target, list: List, known: Known): Plan {
  const { spool, rejectsFile } = list;
  const { first } = spool;
  const { learned, stop, existing, isJoined, last, beside } = known;
  return {
    files: spool.files,
    rows: spool.rows,
    ids: spool.ids,
    samples: samplesOf(spool),
    column: hasColumns(spool.files, config) && !config.noHeader ? config.column : null,
    duplicates: spool.duplicates,
    rejected: spool.rejectedByCode,
    rejectsFile,
    protected: spool.protected,
    protectedRead: spool.protectedList?.ids ?? null,
    limited: spool.limited ? (config.limit ?? null) : null,
    baseUrl: target.baseUrl,
    account: target.account,
    tokenSource: tokenSource(config, env),
    firstUrl: first === null ? null : target.baseUrl + idPath(first.resource, first.id),
    treat: existing?.treat ?? config.treat,
    expectAbsent: config.expectAbsent || (existing?.expectAbsent ?? false),
    rate: config.rate ?? existing?.rate ?? null,
    rateBefore: existing?.rate ?? null,
    learned,
    maxConcurrency: config.maxConcurrency,
    stop,
    existing: existing && { ...existingOf(existing), isJoined },
    before: last !== null && isSealed(last.state) ? beforeOf(last) : null,
    beside: beside.map((run) => ({
      ...existingOf(run),
      files: run.files,
      protectedRead: run.protectedRead,
    })),
  };
}

const shownSamples = 3;

/** The first ids that would be sent. */
function samplesOf(spool: Spool): string[] {
  for (const part of readChunks(spool, shownSamples)) if ('ids' in part) return [...part.ids];
  return [];
}

function hasColumns(files: readonly string[], { format }: Invocation['config']): boolean {
  const formats = files.map((name) => formatOf({ name, isStdin: name === stdinName }, format ?? null));
  return formats.some((used) => used !== 'lines');
}

function existingOf(run: ListedRun) {
  return { runId: run.id, state: run.state, reason: run.reason, left: pendingOf(run), who: run.who };
}

function beforeOf({ id, state, endedAt, counts }: Run): Plan['before'] {
  return { runId: id, state, endedAt, counts };
}
