import type { Config } from '../config/settings.ts';
import { countChunks } from '../input/chunk-ids.ts';
import type { Spool } from '../input/spool.ts';
import { listOf, type Target } from '../model/target.ts';
import type { RunPlan } from './create-run.ts';
import type { Priority } from './priority.ts';

/** The settings that a run takes with it. */
export type RunSettings = Pick<Config, 'rate' | 'burst' | 'treat' | 'expectAbsent' | 'keep'>;

/** Who makes a run, why, and for whom. */
type Origin = { note: string; detached: boolean; who: string; priority: Priority; command: string };

/** The run that a list becomes. */
export function planRun(settings: RunSettings, target: Target, spool: Spool, origin: Origin): RunPlan {
  return {
    target,
    list: listOf(target, spool.sha256),
    sha256: spool.sha256,
    files: spool.files,
    layout: spool.layout,
    rows: spool.rows,
    ids: spool.ids.annotations + spool.ids.views,
    ...countChunks(spool),
    settled: { rejected: spool.rejected, duplicate: spool.duplicates, protected: spool.protected },
    protectedRead: spool.protectedList?.ids ?? null,
    rate: settings.rate ?? null,
    burst: settings.burst ?? null,
    treat: settings.treat,
    expectAbsent: settings.expectAbsent,
    keepMs: settings.keep,
    ...origin,
  };
}
