import { stat } from 'node:fs/promises';
import type { ListSource } from '../config/list-source.ts';
import { ExpungeError } from '../errors.ts';
import { inputError } from '../input/input-error.ts';
import { type InputSettings, toInputOptions } from '../input/input-options.ts';
import { type ProtectFile, toProtectFile } from '../input/read-protected.ts';
import type { ProtectedList } from '../input/spool.ts';
import { type List, withList } from '../input/with-list.ts';
import { refuseUnprotected } from '../ledger/protection.ts';
import { requireDefined, requireSameDefinitions } from '../ledger/same-definitions.ts';
import { usedResources } from '../model/resource.ts';
import { suggest } from '../model/suggest.ts';
import { removeOldFiles } from '../report/file-retention.ts';
import { describeFileError } from '../system-errors.ts';
import { type OpenSource, openSource } from './open-source.ts';
import { parseStoredSettings, type Schedule } from './schedule.ts';
import type { ScheduleDeps } from './schedule-store.ts';

/** A list from a source, the files to archive, and the reason why there is nothing to do; '' if there is something. */
export type ScheduledList = Pick<List, 'spool'> & Omit<OpenSource, 'files'>;

/**
 * Reads the whole list of a schedule, calls `body` with it, and removes it. Throws USAGE if the source does not give a complete list, or if the
 * protected ids cannot be read on this machine. Throws GUARD if only a worker of the target names protected ids, or if the definitions of resources here
 * are not the definitions of the schedule. Throws the reason of `stop`. Nothing is sent or stored before that.
 */
export async function withScheduledList<T>(
  deps: ScheduleDeps,
  schedule: Schedule,
  stop: AbortSignal,
  body: (list: ScheduledList) => Promise<T>,
): Promise<T> {
  const source = sourceOf(deps, schedule);
  const { definitions, name } = schedule;
  requireSameDefinitions(definitions, `schedule ${name}`);
  const settings = parseStoredSettings(schedule);
  const { limit = null } = settings;
  const protectFile = toProtectFile(settings);
  refuseUnprotectedHere(deps, schedule);
  await refuseUnprotected(deps.ledger.redis, deps.target.fp, { isProtected: protectFile !== null, ids: [] });
  if (protectFile !== null) await checkProtectFile(protectFile.path);
  let opened: Omit<OpenSource, 'files'> = { read: [], nothing: '' };
  const open = async () => {
    const { files, ...others } = await openSource(schedule.from, source, { ...deps, stop });
    opened = others;
    const onRows = () => stop.throwIfAborted();
    const { expectRejected } = settings;
    return { files, options: toInputOptions(settings), protectFile, limit, expectRejected, onRows };
  };
  return withList(deps.stateDir, open, async ({ spool }) => {
    requireDefined(definitions, usedResources(spool.ids), `schedule ${name}`);
    await removeOldFiles(deps.stateDir, settings.keep, Date.now()); // a file of the list may be one of them
    // Files that were not read completely hold more ids to delete, so they stay.
    return body({ spool, ...opened, read: spool.limited ? [] : opened.read });
  });
}

/** Reads the content of a file of protected ids, as for an occurrence. Throws USAGE if it cannot be read. */
export async function readProtectedList(
  stateDir: string,
  protectFile: ProtectFile,
  settings: InputSettings,
): Promise<ProtectedList | null> {
  await checkProtectFile(protectFile.path);
  const nothing = { files: [], limit: null, expectRejected: false, onRows: () => {} };
  const reading = { ...nothing, options: toInputOptions(settings), protectFile };
  return withList(
    stateDir,
    async () => reading,
    async ({ spool }) => spool.protectedList,
  );
}

/**
 * Throws USAGE if the settings of this process name a protect file and the schedule has none, because the setting is also meant for its schedules.
 */
function refuseUnprotectedHere({ protectFile }: ScheduleDeps, { name, settings }: Schedule): void {
  if (protectFile === null || settings.protect !== undefined) return;
  const message = `schedule ${name} protects no ids, but the settings of this process name ${protectFile}`;
  throw new ExpungeError('USAGE', message, {
    next: `add the schedule again with --replace --protect ${protectFile}, or remove the setting here`,
  });
}

/** Throws USAGE for anything but a file: the path comes from Redis, and reading a device or a pipe might never end. */
async function checkProtectFile(path: string): Promise<void> {
  const found = await stat(path).catch((error) => describeFileError(error));
  if (typeof found !== 'string' && found.isFile()) return;
  const problem = typeof found === 'string' ? `${found} here` : 'expected a file';
  throw inputError(path, null, `${problem}; without its protected ids nothing is deleted`);
}

/** Throws USAGE if this process has no source of that name. */
function sourceOf({ sources }: ScheduleDeps, { from }: Schedule): ListSource {
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
