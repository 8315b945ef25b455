import { existsSync, realpathSync } from 'node:fs';
import { basename, delimiter, dirname, join, relative } from 'node:path';
import { quoteForShell } from '../model/shell-word.ts';

/** What a process was started with: `node`, as it was named, and the script. */
type Started = { node: string; script: string };

/**
 * This program as its user can start it again, for a shell: `expunge` where the PATH of the shell finds it, else what was started, such as
 * `./expunge` in a checkout or `node ./dist/bin.js`.
 */
export function programOf({ node, script }: Started, env: NodeJS.ProcessEnv): string {
  if (script === '') return 'expunge';
  const launcher = basename(script) === 'bin.js' ? launcherOf(script) : script;
  if (isSame(foundIn(foldersOf(env)), launcher ?? script)) return 'expunge';
  if (launcher !== null) return quoteForShell(fromHere(launcher));
  return `${quoteForShell(node)} ${quoteForShell(fromHere(script))}`;
}

/** The launcher of a checkout, which starts the source beside it. Null for what is built. */
function launcherOf(script: string): string | null {
  const folder = dirname(script);
  const launcher = join(dirname(folder), 'expunge');
  return basename(folder) === 'src' && existsSync(launcher) ? launcher : null;
}

/** The folders of the PATH that the shell has, too: npm puts folders with programs of packages before those. */
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
    return false; // it was removed meanwhile
  }
}

/** A path that works in this folder: relative below it, unless that is all of it, else the whole one. */
function fromHere(path: string): string {
  try {
    const short = relative(process.cwd(), path);
    return short.startsWith('..') || path === `/${short}` ? path : `./${short}`;
  } catch {
    return path; // the folder was removed
  }
}
