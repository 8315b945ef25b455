import { Readable, Writable } from 'node:stream';
import type { Invocation } from '../../src/commands/command.ts';
import { readCommandLine } from '../../src/commands/read-command-line.ts';
import { loadConfig } from '../../src/config.ts';

/** A command line done in this process, as with an environment of nothing but this; nobody is there to be asked. `printed`: its stdout so far. */
export function invoke(argv: string[], env: NodeJS.ProcessEnv): { ended: Promise<number>; printed(): string } {
  let printed = '';
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
  const { command, verb, args, options, flags } = readCommandLine(argv, '', () => {})!;
  const { PATH: _, ...variables } = env;
  const { config, sources } = loadConfig({ flags, env: variables, configFile: undefined });
  const invocation: Invocation = {
    ...{ verb, args, options, config, sources, env, stdout },
    ...{ stdin: Readable.from([]) as unknown as NodeJS.ReadStream, stderr: stream(() => {}) },
    outputClosed: new AbortController().signal,
  };
  return { ended: command.load!().then(({ execute }) => execute(invocation)), printed: () => printed };
}
