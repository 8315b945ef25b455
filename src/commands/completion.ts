import { oneOf } from '../config/parse-setting.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import type { Invocation } from './command.ts';
import { completionScripts, type Shell, shells } from './completion-scripts.ts';

/** Prints the completion of a shell. It asks this program for what it offers, so it stays right after an update. */
export async function execute({ args, stdout }: Invocation): Promise<number> {
  stdout.write(completionScripts[readShell(args[0] ?? '')]);
  return 0;
}

function readShell(text: string): Shell {
  try {
    return oneOf(shells)(text);
  } catch (error) {
    throw new ExpungeError('USAGE', messageOf(error));
  }
}
