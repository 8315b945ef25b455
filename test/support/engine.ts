import { execFileSync } from 'node:child_process';
import { type ProgramOptions, runProgram } from './processes.ts';

/** True where a container engine answers that has these images or can fetch them; else says on the console why it is of no use. */
export function engineHas(...images: string[]): boolean {
  const reason = images.map(whyMissing).find(Boolean);
  if (reason) console.log(`skipped: ${reason}`);
  return !reason;
}

/** The same for what compose starts. */
export function engineComposes(...images: string[]): boolean {
  if (!engineHas(...images)) return false;
  const composes = succeeds(['compose', 'version']);
  if (!composes) console.log('skipped: the container engine has no `docker compose`');
  return composes;
}

/** What `docker …` writes to stdout. Throws what it writes to stderr where it fails. */
export async function docker(args: readonly string[], { env, ...rest }: ProgramOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await runProgram('docker', args, { env: { ...dockerEnv(), ...env }, ...rest });
  if (code !== 0) throw new Error(`docker ${args.join(' ')} ended with ${code}: ${stderr}${stdout}`);
  return stdout.trim();
}

/** The surroundings but for the settings of expunge, which compose would read. */
function dockerEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('EXPUNGE_')));
}

function engineAnswers(): boolean {
  return succeeds(['ps', '--quiet']);
}

/** Why the container engine cannot start this image, or null. */
export function whyMissing(image: string): string | null {
  if (!engineAnswers()) return 'no container engine answers on this machine';
  const isThere = succeeds(['image', 'inspect', image]) || succeeds(['pull', '--quiet', image], 60_000);
  return isThere ? null : `the container engine has no ${image} and cannot fetch it`;
}

function succeeds(args: string[], timeout = 10_000): boolean {
  try {
    execFileSync('docker', args, { stdio: 'ignore', timeout });
    return true;
  } catch {
    return false;
  }
}
