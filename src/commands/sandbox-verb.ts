import type { Invocation } from './command.ts';
import { listenForInterrupts } from './interrupts.ts';
import { runSandbox } from './sandbox.ts';

export async function execute({ options, stdout }: Invocation): Promise<number> {
  const interrupts = listenForInterrupts(() => {});
  const { writeToken, tokenLife, rateLimit, rateWindow, ...rest } = options as Record<string, never>;
  const renamed = { tokenFile: writeToken, rate: rateLimit, rateWindowMs: rateWindow };
  const flags = { ...rest, ...renamed, tokenLifeSeconds: tokenLife && tokenLife / 1_000 };
  return runSandbox(flags, (line) => stdout.write(`${line}\n`), interrupts.signal);
}
