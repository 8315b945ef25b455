import type { ApiClient } from '../api/client.ts';
import { isAway } from '../api/client.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import type { Run } from '../ledger/run.ts';
import { cursorAt, type Found, isLineOf, refuseUnwritten, type WrittenRows } from '../operations/follow-run.ts';
import { plainLine } from '../terminal/style.ts';
import type { Invocation } from './command.ts';
import { follow } from './follow-report.ts';

/** `report --follow` by the API of a server, which is asked about once a second for what is new. */
export async function followOver(invocation: Invocation, api: ApiClient, run: Run): Promise<number> {
  refuseUnwritten(run);
  cursorAt(run, invocation.options.from as string | undefined); // what is wrong with it is said in the same words as beside Redis
  const look = (written: WrittenRows, stop: AbortSignal) => copyNews(api, run, written, stop);
  return follow(invocation, run, look, (error) => (isAway(error) ? messageOf(error) : null));
}

/** Writes the lines that a server sends; what breaks off goes on at the cursor. Throws INTERNAL for what the server tells as the last line. */
async function copyNews(api: ApiClient, { id }: Run, written: WrittenRows, signal: AbortSignal): Promise<Found> {
  const query = { from: written.goOn ?? undefined };
  const text = api.text({ method: 'GET', path: `/runs/${id}/outcomes`, query, signal }, 'application/x-ndjson');
  for await (const lines of wholeLines(text)) {
    const last = lines.at(-1)!;
    const problem = isLineOf('problem', last) ? JSON.parse(lines.pop()!) : null;
    if (lines.length > 0 && !(await written.copy(lines))) return 'closed';
    if (problem !== null) throw new ExpungeError('INTERNAL', plainLine(String(problem.detail)));
    if (isLineOf('summary', last)) return 'all';
  }
  return 'more';
}

/** The lines of a text, as many as each part of it ends; what follows the last line end is none. */
export async function* wholeLines(text: AsyncIterable<string>): AsyncGenerator<string[]> {
  let rest = '';
  for await (const part of text) {
    const lines = (rest + part).split('\n');
    rest = lines.pop()!;
    if (lines.length > 0) yield lines;
  }
}
