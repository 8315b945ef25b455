import { chmodSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { libraryPath, missingTools, openApt } from '../../src/redis/private/apt-packages.ts';
import type { ServerProgram } from '../../src/redis/private/place.ts';
import { lastLine, readServerProgram, runProgram } from '../../src/redis/private/server-process.ts';

/** A server as a release of Debian has it, this machine's or another: `redis-tools` of `bookworm`; `over` is what that release builds on. */
export type DebianServer = { tools: string; release: string; over?: string };

/**
 * Unpacks it into the folder with all libraries it needs, the loader among them, so that it runs on an older Debian, too. Returns the
 * server, or why it cannot be had. Asks the mirror that this machine has its own packages from.
 */
export async function debianServer(server: DebianServer, folder: string): Promise<ServerProgram | { closed: string }> {
  const env = { ...process.env, LC_ALL: 'C' };
  const missing = missingTools(env);
  if (missing.length > 0) return { closed: `there is no ${missing.join(', ')} on this machine` };
  const mirror = await mirrorOf(env);
  if (mirror === null) return { closed: 'this machine has no packages of Debian' };
  const { tools, release, over } = server;
  mkdirSync(folder, { recursive: true });
  const sources = join(folder, 'sources.list');
  writeFileSync(sources, [release, over].flatMap((name) => (name ? `deb ${mirror} ${name} main\n` : [])).join(''));
  const own = [`Dir::Etc::SourceList=${sources}`, 'Dir::Etc::SourceParts=-', 'Dir::State::Status=/dev/null'];
  const apt = openApt(join(folder, 'apt'), env, [...own, `APT::Default-Release=${release}`]);
  await apt.run('apt-get', ['update']);
  const needed = await apt.run('apt-cache', ['depends', '--recurse', '--important', tools]);
  const names = needed.stdout.split('\n').filter((name) => name === tools || /^(lib|gcc-|zlib)/.test(name));
  const got = await apt.download(names);
  if (!got.ok) return { closed: `${tools} of ${release} could not be downloaded: ${lastLine(got.stderr)}` };
  const root = join(folder, 'root');
  for (const name of readdirSync(apt.packages)) {
    await runProgram('dpkg-deb', ['-x', join(apt.packages, name), root], { env, deadlineMs: 60_000 });
  }
  return readServerProgram(writeStart(folder, root, tools.replace('-tools', '')), {});
}

async function mirrorOf(env: NodeJS.ProcessEnv): Promise<string | null> {
  const args = ['indextargets', '--format', '$(REPO_URI) $(RELEASE)', 'Created-By: Packages', 'Origin: Debian'];
  const { stdout } = await runProgram('apt-get', args, { env, deadlineMs: 10_000 });
  return /^(\S+) (?!.*-security$)/m.exec(stdout)?.[1] ?? null;
}

/** Server and tools are one program, which looks at the name it is called by. */
function writeStart(folder: string, root: string, name: string): string {
  const program = join(root, 'usr/bin', `${name}-server`);
  symlinkSync(`${name}-check-rdb`, program);
  const libraries = libraryPath(root);
  const loader = libraries
    .split(':')
    .flatMap((path) => readdirSync(path).flatMap((file) => (isLoader(file) ? join(path, file) : [])));
  const start = join(folder, `${name}-server`);
  writeFileSync(start, `#!/bin/sh\nexec '${loader[0]}' --library-path '${libraries}' '${program}' "$@"\n`);
  chmodSync(start, 0o755);
  return start;
}

function isLoader(file: string): boolean {
  return /^ld-linux.*\.so\.\d+$/.test(file);
}
