import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Config } from '../config/settings.ts';
import { toInputOptions } from '../input/input-options.ts';
import { type InputFile, openInputs } from '../input/open-inputs.ts';
import { toProtectFile } from '../input/read-protected.ts';
import { type List, withList } from '../input/with-list.ts';
import { removeOldFiles } from '../report/file-retention.ts';

/**
 * The files of a list. `rejectsFolder`: the folder for its rejected rows, if not the state folder; `onRows`: called with the number of rows read
 * since.
 */
type Opened = { files: InputFile[]; rejectsFolder?: string; onRows(rows: number): void };

/** Reads a list as the settings say, removes expired files, and calls `body`. Throws what `withList` throws. */
export function withReadList<T>(
  config: Config,
  open: () => Promise<Opened>,
  body: (list: List) => Promise<T>,
): Promise<T> {
  const { limit = null, expectRejected } = config;
  const options = { options: toInputOptions(config), protectFile: toProtectFile(config), limit, expectRejected };
  return withList(
    config.stateDir,
    async () => ({ ...options, ...(await open()) }),
    async (list) => {
      await removeOldFiles(config.stateDir, config.keep, Date.now()); // the list itself may be one of them
      return body(list);
    },
  );
}

/** Maximum size of a list that is sent to a server, in bytes, also after unpacking. */
export const maxUploadBytes = 16e9;

const unpackedAnyway = 10e6;
const unpackedTimes = 300; // times their packed size: ids that count up shrink most, to a 140th by zstd -19

/** Maximum unpacked size of a packed list of this size, in bytes: a few crafted kilobytes would otherwise keep a server busy for minutes. Pure. */
function maxUnpackedBytes(packed: number): number {
  return Math.min(Math.max(unpackedTimes * packed, unpackedAnyway), maxUploadBytes);
}

/** A list that was sent to a server. `isPiped`: whether a program wrote it to a pipe; `isNew`: whether no plan of it was made. */
type Upload = { folder: string; path: string; isPiped: boolean; isNew: boolean };

/** Reads an upload, calls `body`, and removes what was read. Its folder takes its rejected rows, and its path is never shown. */
export function withUpload<T>(
  config: Config,
  { folder, path, isPiped, isNew }: Upload,
  body: (list: List) => Promise<T>,
): Promise<T> {
  const open = async () => {
    const [opened, { size: packed }] = await Promise.all([openInputs([path]), stat(path)]);
    const size = { packed, maxUnpackedBytes: maxUnpackedBytes(packed) };
    const more = { isPipe: isPiped, isUnattended: isNew, size };
    const files = opened.map((file) => ({ ...file, name: basename(file.name), ...more }));
    return { files, rejectsFolder: folder, onRows: () => {} };
  };
  return withReadList(config, open, body);
}
