import { existsSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { findOnPath, lastLine, type ProgramResult, runProgram } from './server-process.ts';

const serverPackage = 'redis-tools'; // contains the server's binary; the package redis-server only adds a link and a unit file
const fetchMs = 120_000;

/**
 * Downloads Redis, and the libraries that this machine lacks, from the machine's package sources and unpacks them into `folder`. Returns the size of
 * the packages in bytes. Throws an Error whose message is for people. Changes nothing outside the folder.
 */
export async function unpackPackages(folder: string, env: NodeJS.ProcessEnv): Promise<number> {
  const apt = openApt(join(folder, 'apt'), env);
  const update = await apt.run('apt-get', ['update']); // it fails if one source is broken, even if the others are enough
  const server = await apt.download([serverPackage]);
  if (!server.ok)
    throw new Error(`${serverPackage} could not be downloaded: ${lastLine(server.stderr || update.stderr)}`);
  await unpack(apt.packages, folder, env);
  await fetchLibraries(folder, apt, env);
  const bytes = sizeOf(apt.packages);
  removeAllButPrograms(folder);
  return bytes;
}

/** The programs that unpacking needs and that this machine lacks. */
export function missingTools(env: NodeJS.ProcessEnv): string[] {
  return ['apt-get', 'apt-cache', 'dpkg-deb', 'ldd'].filter((name) => !findOnPath(name, env));
}

/** LD_LIBRARY_PATH for the programs in the folder. */
export function libraryPath(folder: string): string {
  const roots = [join(folder, 'usr/lib'), join(folder, 'lib')].filter((root) => existsSync(root));
  return roots
    .flatMap((root) =>
      foldersIn(root)
        .filter((name) => name.includes('-linux-gnu'))
        .map((name) => join(root, name)),
    )
    .join(':');
}

/** apt with the sources of this machine and folders of its own. */
type Apt = {
  packages: string; // the folder of the downloads
  run: (program: string, args: string[]) => Promise<ProgramResult>;
  download: (names: string[]) => Promise<ProgramResult>;
};

/** Runs apt with its own lists, cache and log, so that it needs neither root nor the system's lock. `more`: further options. */
export function openApt(folder: string, env: NodeJS.ProcessEnv, more: string[] = []): Apt {
  const packages = join(folder, 'packages');
  for (const path of ['lists/partial', 'cache/archives/partial', 'log', 'packages']) {
    mkdirSync(join(folder, path), { recursive: true, mode: 0o700 });
  }
  const own = [`Dir::State::Lists=${folder}/lists`, `Dir::Cache=${folder}/cache`, `Dir::Log=${folder}/log`];
  const options = [...own, 'APT::Sandbox::User=', 'Acquire::Languages=none', ...more].flatMap((option) => [
    '-o',
    option,
  ]);
  const run = (program: string, args: string[]) =>
    runProgram(program, ['-q', ...options, ...args], { env: inEnglish(env), deadlineMs: fetchMs, cwd: packages });
  return { packages, run, download: (names) => run('apt-get', ['download', ...names]) };
}

async function fetchLibraries(folder: string, apt: Apt, env: NodeJS.ProcessEnv): Promise<void> {
  const libraries = await missingLibraries(folder, env);
  if (libraries.length === 0) return;
  const got = await apt.download(await packagesOf(libraries, apt));
  if (!got.ok) throw new Error(`${libraries.join(', ')} could not be downloaded: ${lastLine(got.stderr)}`);
  await unpack(apt.packages, folder, env);
}

async function missingLibraries(folder: string, env: NodeJS.ProcessEnv): Promise<string[]> {
  const { stdout } = await runProgram('ldd', [join(folder, binary)], { env: inEnglish(env), deadlineMs: 10_000 });
  return [...stdout.matchAll(/^\s*(\S+) => not found/gm)].map((match) => match[1] ?? '');
}

/** Finds the packages with these libraries. Their names differ between releases (libssl3, libssl3t64), so they are found in the dependencies. */
async function packagesOf(libraries: string[], apt: Apt): Promise<string[]> {
  const { stdout } = await apt.run('apt-cache', ['depends', serverPackage]);
  const dependencies = [...stdout.matchAll(/^\s*\|?Depends: (\S+)/gm)].map((match) => match[1] ?? '');
  const stems = libraries.map((library) => library.replace(/\.so\..*$/, '').replace(/^libcrypto$/, 'libssl'));
  return dependencies.filter((name) => stems.some((stem) => name.startsWith(stem)));
}

async function unpack(packages: string, folder: string, env: NodeJS.ProcessEnv): Promise<void> {
  for (const name of readdirSync(packages)) {
    const { ok, stderr } = await runProgram('dpkg-deb', ['-x', join(packages, name), folder], {
      env,
      deadlineMs: 30_000,
    });
    if (!ok) throw new Error(`${name} could not be unpacked: ${lastLine(stderr)}`);
  }
}

const binary = 'usr/bin/redis-check-rdb'; // server and tools are one program, which behaves according to the name it is started with

function removeAllButPrograms(folder: string): void {
  for (const path of ['apt', 'usr/share', 'etc', 'var']) rmSync(join(folder, path), { recursive: true, force: true });
  symlinkSync('redis-check-rdb', join(folder, 'usr/bin/redis-server'));
}

function inEnglish(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, LC_ALL: 'C' };
}

function sizeOf(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

function foldersIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
}
