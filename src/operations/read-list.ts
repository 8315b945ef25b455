import { basename } from 'node:path';
import type { Config } from '../config/settings.ts';
import { inputOptionsOf } from '../input/input-options.ts';
import { openInputs } from '../input/open-inputs.ts';
import { protectFileOf } from '../input/read-protected.ts';
import { withList } from '../input/with-list.ts';
import { removeOldFiles } from '../ledger/file-retention.ts';
import type { ReadList } from './list-order.ts';

/** How the settings read a list. */
export function readingOf(config: Config) {
  const { limit = null, expectRejected } = config;
  return { options: inputOptionsOf(config), protectFile: protectFileOf(config), limit, expectRejected };
}

/**
 * Reads lists that were sent to a server. `folder`: holds them, and takes their rejected rows; nobody is told where that is. `isPiped`: whether a
 * program wrote the list, so that it may be cut off.
 */
export function readUploaded(folder: string, isPiped: boolean): ReadList {
  return ({ config }, paths, body) => {
    const open = async () => {
      const opened = await openInputs(paths);
      const files = opened.map((file) => ({ ...file, name: basename(file.name), isPipe: isPiped }));
      return { files, ...readingOf(config), rejectsFolder: folder, onRows: () => {} };
    };
    return withList(config.stateDir, open, async (list) => {
      await removeOldFiles(config.stateDir, config.keep, Date.now()); // the list itself may be one of them
      return body(list);
    });
  };
}
