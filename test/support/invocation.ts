import { Readable, Writable } from 'node:stream';
import type { Invocation } from '../../src/commands/command.ts';
import { readCommandLine } from '../../src/commands/command-line.ts';
import { loadConfig } from '../../src/config/read-config.ts';

type Invoked = { ended: Promise<number>; printed(): string; told(): string };

/**
 * A command line done in this process, as with an environment of nothing but this; nobody is there to be asked. `printed`: its stdout so far,
 * `told`: its stderr.
 */
export function invoke(argv: string[], env: NodeJS.ProcessEnv): Invoked {
  let [printed, told] = ['', ''];
  const stream = (keep: (text: string) => void) => {
    const write = (chunk: Buffer, _encoding: string, done: () => void) => {
      keep(String(chunk));
      done();
    };
    return new Writable({ write }) as unknown as NodeJS.WriteStream;
  };
  const stdout = stream((text) => {
    printed += text;
  });
  const stderr = stream((text) => {
    told += text;
  });
  const { command, verb, args, options, flags, verbosity } = readCommandLine(argv, '', () => {})!;
  const { PATH: _, ...variables } = env;
  const { config, sources } = loadConfig({ flags, env: variables, configFile: undefined });
  const invocation: Invocation = {
    ...{ verb, args, options, config, sources, verbosity, env, stdout },
    ...{ stdin: Readable.from([]) as unknown as NodeJS.ReadStream, stderr },
    outputClosed: new AbortController().signal,
  };
  const ended = command.load!().then(({ execute }) => execute(invocation));
  return { ended, printed: () => printed, told: () => told };
}
