import { setFlagsFromString } from 'node:v8';
import { ExpungeError, messageOf } from '../../errors.ts';
import { keepNewSpace } from '../../new-space.ts';
import { explainFileError, systemCode } from '../../system-errors.ts';
import { safeOutput } from '../../terminal/safe-output.ts';
import { complain, complainingBefore, executeLine } from './execute.ts';
import { nameProgram } from './program.ts';

// By default V8 lets the heap grow to several times the memory in use, because a run allocates much in a short time. This setting keeps a run of
// millions of ids under 200 MB at no measurable cost.
setFlagsFromString('--heap-growing-percent=50');
keepNewSpace();

const { env, stdin } = process;
const [stdout, stderr] = [safeOutput(process.stdout), safeOutput(process.stderr)];
const program = nameProgram({ node: process.argv0, script: process.argv[1] ?? '' }, env);
const complaining = complainingBefore({ program, env });
complaining.isVerbose ||= process.argv.some((arg) => arg === '-v' || arg === '--verbose');
const outputClosed = new AbortController();

let lostOutput: Error | null = null;

// The reader of stdout may close it early (`| head`). That is not an error, and a run continues. A full disk is an error.
stdout.on('error', (error) => {
  if (systemCode(error) !== 'EPIPE') lostOutput ??= error;
  outputClosed.abort();
});
stderr.on('error', () => {});
process.on('uncaughtException', (error) => end(complain(error, stderr, complaining)));

await end(
  await executeLine(
    process.argv.slice(2),
    { program, env, stdin, stdout, stderr, signals: process, outputClosed: outputClosed.signal },
    complaining,
  ),
);

/** Ends the process even if sockets are open, after all output is written. */
async function end(code: number): Promise<void> {
  await flush(stdout);
  const exit = lostOutput && code === 0 ? complain(incomplete(lostOutput), stderr, complaining) : code;
  await flush(stderr);
  process.exit(exit);
}

function incomplete(error: Error): ExpungeError {
  return new ExpungeError('INTERNAL', `the output is incomplete: ${messageOf(error)}`, {
    next: explainFileError(error).next,
  });
}

function flush(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write('', () => resolve());
  });
}
