import type { ApiClient } from '../api/client.ts';
import { messageOf } from '../errors.ts';
import type { Run } from '../ledger/run.ts';
import type { Invocation } from './command.ts';
import { cursorAt, follow, refuseUnwritten, type WrittenRows } from './follow-report.ts';
import { isAway } from './server-status.ts';

/** `report --follow` by the API of a server, which is asked about once a second for what is new. */
export async function followOver(invocation: Invocation, api: ApiClient, run: Run): Promise<number> {
  refuseUnwritten(run);
  cursorAt(run, invocation.options.from as string | undefined); // what is wrong with it is said in the same words as beside Redis
  const look = (written: WrittenRows) => copyNews(api, run, written);
  return follow(invocation, run, look, (error) => (isAway(error) ? messageOf(error) : null));
}

/** Writes the lines that a server sends; what breaks off goes on at the cursor. */
async function copyNews(api: ApiClient, { id }: Run, written: WrittenRows): Promise<'all' | 'more' | 'closed'> {
  let rest = '';
  let last = '';
  const query = { from: written.goOn ?? undefined };
  for await (const text of api.text({ method: 'GET', path: `/runs/${id}/outcomes`, query, isLong: true })) {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    last = lines.at(-1) ?? last;
    if (lines.length > 0 && !(await written.copy(lines))) return 'closed';
  }
  return last.startsWith('{"v":1,"type":"summary"') ? 'all' : 'more';
}
