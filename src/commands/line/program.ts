import { existsSync, realpathSync } from 'node:fs';
import { basename, delimiter, dirname, join, relative } from 'node:path';
import { quoteForShell } from '../../model/shell-word.ts';

/** The command that started a process: `node`, as it was named, and the script. */
type Started = { node: string; script: string };

/**
 * The command, for a shell, with which the user can start this program again: `expunge` if the PATH of the shell finds it, otherwise the file that
 * was started, such as `./expunge` in a checkout or `node ./dist/bin.js`.
 */
export function nameProgram({ node, script }: Started, env: NodeJS.ProcessEnv): string {
  if (script === '') return 'expunge';
  const launcher = basename(script) === 'bin.js' ? launcherOf(script) : script;
  if (isSame(foundIn(foldersOf(env)), launcher ?? script)) return 'expunge';
  if (launcher !== null) return quoteForShell(fromHere(launcher));
  return `${quoteForShell(node)} ${quoteForShell(fromHere(script))}`;
}

/** The launcher of a checkout, which starts the source next to it. Null for a build. */
function launcherOf(script: string): string | null {
  const folder = dirname(script);
  const launcher = join(dirname(folder), 'expunge');
  return basename(folder) === 'src' && existsSync(launcher) ? launcher : null;
}

/** The folders of the PATH that the shell also has: npm puts folders with programs of packages in front. */
function foldersOf({ PATH = '', npm_execpath: npm }: NodeJS.ProcessEnv): string[] {
  const folders = PATH.split(delimiter).filter(Boolean);
  return npm === undefined ? folders : folders.filter((folder) => !folder.endsWith(join('node_modules', '.bin')));
}

function foundIn(folders: readonly string[]): string | null {
  return folders.map((folder) => join(folder, 'expunge')).find((path) => existsSync(path)) ?? null;
}

function isSame(found: string | null, started: string): boolean {
  if (found === null) return false;
  try {
    return realpathSync(found) === realpathSync(started);
  } catch {
    return false; // it was removed in the meantime
  }
}

/** A path that works in this folder: relative if it is below this folder, otherwise absolute. */
function fromHere(path: string): string {
  try {
    const short = relative(process.cwd(), path);
    return short.startsWith('..') || path === `/${short}` ? path : `./${short}`;
  } catch {
    return path; // this folder was removed
  }
}
