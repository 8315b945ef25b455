import { refusePlainHttp } from '../config/check-target.ts';
import type { ListSource } from '../config/list-source.ts';
import type { InputFile } from '../input/open-inputs.ts';
import type { Log } from '../logger.ts';
import { commandFile } from './command-source.ts';
import { openGlob } from './glob-source.ts';
import type { ReadFiles } from './schedule.ts';
import { urlFile } from './url-source.ts';

/** What reading a source needs from around it. */
export type Surroundings = {
  env: NodeJS.ProcessEnv;
  proxy: string | null;
  allowHttp: string | undefined;
  /** Ends the reading: it throws then. */
  stop: AbortSignal;
  wait(ms: number, stop: AbortSignal): Promise<void>;
  log: Log;
};

/** A source as input, the files that could be put away afterwards, and why there is nothing to do; '' = there is. */
export type OpenSource = { files: InputFile[]; read: ReadFiles['files']; nothing: string };

/** Opens a source. Throws USAGE, here or while it is read, where it gives no whole list. */
export async function openSource(name: string, source: ListSource, around: Surroundings): Promise<OpenSource> {
  switch (source.kind) {
    case 'glob':
      return openGlob(name, source, around);
    case 'command':
      return { files: [commandFile(name, source, around)], read: [], nothing: '' };
    case 'url':
      refusePlainHttp(`source ${name}:`, source.url, around.allowHttp, 'change the list');
      return { files: [urlFile(name, source, around)], read: [], nothing: '' };
  }
}
