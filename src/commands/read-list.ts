import { ExpungeError } from '../errors.ts';
import { count } from '../format.ts';
import { inputOptionsOf } from '../input/input-options.ts';
import { openInputs } from '../input/open-inputs.ts';
import { type List, withList } from '../input/with-list.ts';
import { type Progress, startProgress } from '../terminal/progress.ts';
import type { Invocation } from './command.ts';

/** Reads the list of a command and does `body` with it; shows how far the reading has come. */
export async function withNamedList<T>(invocation: Invocation, body: (list: List) => Promise<T>): Promise<T> {
  const { args, config, stdin, stderr, env } = invocation;
  const shown: Progress[] = [];
  const stop = () => shown.pop()?.stop();
  const open = async () => {
    refuseSilentTerminal(args, stdin);
    const files = await openInputs(args, stdin);
    const names = files.map(({ name }) => name).join(', ');
    let rows = 0;
    const onRows = (n: number) => {
      rows += n;
    };
    shown.push(startProgress(stderr, env, () => `Reading ${names}: ${count(rows)} rows`));
    const { protect = null, limit = null, keep: keepMs, expectRejected } = config;
    const bounds = { protectFile: protect, limit, keepMs, expectRejected };
    return { files, options: inputOptionsOf(config), ...bounds, onRows };
  };
  try {
    return await withList(config.stateDir, open, (list) => {
      stop();
      return body(list);
    });
  } finally {
    stop();
  }
}

function refuseSilentTerminal(args: string[], stdin: NodeJS.ReadStream): void {
  if (!args.includes('-') || !stdin.isTTY) return;
  throw new ExpungeError('USAGE', 'ids are expected on stdin, but it is a terminal', {
    next: 'pipe them in, or name a file: expunge run FILE --resource annotations',
  });
}
