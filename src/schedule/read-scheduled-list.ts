import { ExpungeError } from '../errors.ts';
import { inputOptionsOf } from '../input/input-options.ts';
import type { Spool } from '../input/spool.ts';
import { withList } from '../input/with-list.ts';
import { suggest } from '../suggest.ts';
import type { ListSource } from './list-source.ts';
import { openSource } from './open-source.ts';
import { type ReadFiles, type Schedule, settingsOf } from './schedule.ts';
import type { ScheduleWork } from './work.ts';

/** A list that a source gave, and the files that could be put away. */
export type ScheduledList = { spool: Spool; read: ReadFiles['files'] };

/**
 * Reads the whole list of a schedule, does `body` with it, and removes it. Throws USAGE where the source gives no whole list, and what `stop`
 * ends it with; nothing is sent or stored before.
 */
export async function withScheduledList<T>(
  work: ScheduleWork,
  schedule: Schedule,
  stop: AbortSignal,
  body: (list: ScheduledList) => Promise<T>,
): Promise<T> {
  const source = sourceOf(work, schedule);
  let read: ReadFiles['files'] = [];
  const open = async () => {
    const opened = await openSource(schedule.from, source, { ...work, stop });
    read = opened.read;
    const options = inputOptionsOf(settingsOf(schedule));
    return {
      files: opened.files,
      options,
      protectFile: work.protectFile,
      limit: null,
      onRows: () => stop.throwIfAborted(),
    };
  };
  return withList(work.stateDir, open, ({ spool }) => body({ spool, read }));
}

/** Throws USAGE where this process has no source of that name. */
function sourceOf({ sources }: ScheduleWork, { from }: Schedule): ListSource {
  const source = Object.hasOwn(sources, from) ? sources[from] : undefined;
  if (source !== undefined) return source;
  throw new ExpungeError(
    'USAGE',
    `no source "${from}" in the configuration file here.${suggest(from, Object.keys(sources))}`,
    {
      next: `add it: {"sources": {"${from}": {"glob": "…"}}}, or run this where it is defined`,
    },
  );
}
