import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { withoutOwnSecrets } from '../child-process.ts';
import { isTopic, readTopic } from '../help/topics.ts';
import { readingWidth, renderMarkdown } from '../terminal/render-markdown.ts';
import { safeText } from '../terminal/safe-output.ts';
import { isTerminal, styleOf } from '../terminal/style.ts';
import type { Invocation } from './command.ts';

const notFound = 127; // how a shell says that there is no such program

/** `expunge help TOPIC`, where reading the command line has seen that there is such a topic. */
export async function execute({ args: [name = ''], env, stdout }: Invocation): Promise<number> {
  if (!isTopic(name)) throw new Error(`no topic ${name}`);
  const text = renderMarkdown(readTopic(name), readingWidth(stdout, env), styleOf(stdout));
  const isPaged = isTerminal(stdout, env) && (await page(safeText(text), env));
  if (!isPaged) stdout.write(text);
  return 0;
}

/** Shows text through the pager, and says whether there was one. An empty PAGER asks for none. */
async function page(text: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const pager = env.PAGER ?? 'less -R -F -X';
  if (pager.trim() === '') return false;
  // LESS matters where PAGER names less without options: colours are kept, and what fits on the screen needs no key.
  const child = spawn('sh', ['-c', pager], {
    env: { LESS: 'RFX', ...withoutOwnSecrets(env) },
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  child.stdin.on('error', () => {}); // somebody may quit before the end
  child.stdin.end(text);
  // Ctrl-C is for the pager: whoever ends it ends both.
  const ignore = () => {};
  process.on('SIGINT', ignore);
  const [code] = await once(child, 'exit').catch(() => [notFound]);
  process.off('SIGINT', ignore);
  return code !== notFound;
}
