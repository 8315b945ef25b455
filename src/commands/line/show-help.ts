import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { withoutOwnSecrets } from '../../child-process.ts';
import { isTopic, readTopic } from '../../help/topics.ts';
import { readingWidth, renderMarkdown } from '../../terminal/render-markdown.ts';
import { safeText } from '../../terminal/safe-output.ts';
import { isTerminal, styleOf } from '../../terminal/style.ts';
import type { Invocation } from '../command.ts';

const notFound = 127; // exit code of a shell for a program that does not exist

/** `expunge help TOPIC`; reading the command line has checked that the topic exists. */
export async function execute({ args: [name = ''], env, stdout }: Invocation): Promise<number> {
  if (!isTopic(name)) throw new Error(`no topic ${name}`);
  const text = renderMarkdown(readTopic(name), readingWidth(stdout, env), styleOf(stdout));
  const isPaged = isTerminal(stdout, env) && (await page(safeText(text), env));
  if (!isPaged) stdout.write(text);
  return 0;
}

/** Shows text through the pager, and returns whether there is one. An empty PAGER disables it. */
async function page(text: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const pager = env.PAGER ?? 'less -R -F -X';
  if (pager.trim() === '') return false;
  // LESS matters if PAGER names less without options: it keeps colours, and does not wait for a key if the text fits on the screen.
  const child = spawn('sh', ['-c', pager], {
    env: { LESS: 'RFX', ...withoutOwnSecrets(env) },
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  child.stdin.on('error', () => {}); // the reader may quit before the end
  child.stdin.end(text);
  // Ctrl-C belongs to the pager: ending the pager ends this process too.
  const ignore = () => {};
  process.on('SIGINT', ignore);
  const [code] = await once(child, 'exit').catch(() => [notFound]);
  process.off('SIGINT', ignore);
  return code !== notFound;
}
