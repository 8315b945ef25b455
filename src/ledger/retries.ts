import { isUncertain, type Outcome } from '../model/outcome.ts';
import { definitionOf, isNeverRepeated, type Resource, readDefinitions, resourcesIn } from '../model/resource.ts';
import type { Position, Row } from '../model/row.ts';
import { isChosenToRetry, type Selection } from '../model/selection.ts';
import { type RedisClient, readValues } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { type AuditEntry, noteAuditOfRunLua, storedEntry } from './audit.ts';
import { cellReader, decodeLedgerChunk, type IdState } from './cell.ts';
import { decodeChunk } from './manifest.ts';
import { comparePositions, decodeLedger, mergePages, type Page, present, readPositions } from './outcome-rows.ts';
import type { Run } from './run.ts';
import { type Numbered, readNumbered } from './tally.ts';

/** A row of an ended run that a retry sends again. `mayBeGone`: the run may have deleted its object, and was not told that it is not there. */
export type RetriedRow = Row & { outcome: Outcome; mayBeGone: boolean };

const keysPerRead = 16;

/**
 * Reads the chosen rows of an ended run that another run may send again, in input order, as rows of its list: no row that may be gone and whose DELETE
 * is never repeated. Decodes only chunks with a chosen row and holds a few of them in memory. Throws INTERNAL for a chunk that Redis has lost.
 */
export function readRetried(redis: RedisClient, run: Run, only: Selection): AsyncGenerator<RetriedRow[]> {
  const readState = cellReader(run);
  const isRetried = (state: IdState) => isChosenToRetry(only, state);
  const read = (cell: number) => {
    const state = readState(cell);
    return isRetried(state) ? state : null;
  };
  return mergePages(resourcesIn(run.definitions).map((resource) => readPages(redis, run, resource, read)));
}

/** What a retry of a run leaves out, in a sentence; null if nothing. */
export function describeLeftOut({ definitions, counts }: Pick<Run, 'definitions' | 'counts'>): string | null {
  const all = readDefinitions(definitions);
  const named = Object.keys(all).filter((name) => isNeverRepeated(all[name]!));
  if (named.length === 0 || counts.unknown === 0) return null;
  return `ids of ${named.join(', ')} that may have been executed are left out: their DELETE is never repeated`;
}

/** Reads the state of a cell whose id is retried; otherwise null. */
type ReadRetried = (cell: number) => IdState | null;

/** The rows of one resource, one page per chunk; see `readOutcomes`. */
async function* readPages(
  redis: RedisClient,
  run: Run,
  resource: Resource,
  read: ReadRetried,
): AsyncGenerator<Page<RetriedRow>> {
  for await (const part of readNumbered(redis, (n) => keys.ledger(run.id, n), run.chunks, keysPerRead)) {
    const found = part.filter(({ n, bytes }) => {
      const { cells } = decodeLedgerChunk(present(run, `ledger chunk ${n}`, bytes));
      return cells.some((cell) => read(cell) !== null);
    });
    const manifests =
      found.length > 0
        ? await readValues(
            redis,
            found.map(({ n }) => keys.manifest(run.id, n)),
          )
        : [];
    for (const [i, ledger] of found.entries()) yield pageOf(run, ledger, manifests[i]!, resource, read);
  }
}

function pageOf(
  run: Run,
  { n, bytes }: Numbered,
  manifest: Buffer | null,
  resource: Resource,
  read: ReadRetried,
): Page<RetriedRow> {
  const chunk = decodeChunk(n, present(run, `manifest chunk ${n}`, manifest));
  const { cells } = decodeLedger(run, chunk, bytes);
  // By the definition of the run: whoever reads it may not know the resource.
  const definition = readDefinitions(run.definitions)[resource] ?? definitionOf(resource);
  const positions: Position[] = [];
  const rows: RetriedRow[] = [];
  for (const [i, cell] of cells.entries()) {
    const state = chunk.resource === resource ? read(cell) : null;
    if (state === null) continue;
    const outcome = state.outcome as Outcome;
    const mayBeGone = isUncertain(outcome) && !definition.absent.includes(state.status ?? 0);
    if (mayBeGone && isNeverRepeated(definition)) continue;
    positions.push(chunk.positions[i]!);
    rows.push({ ...chunk.positions[i]!, resource, id: chunk.ids[i]!, reject: null, outcome, mayBeGone });
  }
  return { positions, rows };
}

/** Rows of a run in input order, without the rows that are in one of the runs that retry it. A row has the same position there. */
export async function* omitRetriedRows<R extends Position>(
  redis: RedisClient,
  retries: Run[],
  pages: AsyncIterable<R[]>,
): AsyncGenerator<R[]> {
  const finders = retries.map((retry) => findIn(readPositions(redis, retry)));
  for await (const page of pages) {
    const kept: R[] = [];
    for (const row of page) if (!(await isInAny(finders, row))) kept.push(row);
    yield kept;
  }
}

type Finder = (wanted: Position) => Promise<boolean>;

async function isInAny(finders: Finder[], wanted: Position): Promise<boolean> {
  for (const isIn of finders) if (await isIn(wanted)) return true;
  return false;
}

/** Returns a function that finds whether a position is in the pages. The pages, and the positions it is called with, are in input order. */
function findIn(pages: AsyncIterator<Position[]>): Finder {
  let [page, at]: [Position[], number] = [[], 0];
  return async (wanted) => {
    for (;;) {
      while (at < page.length && comparePositions(page[at]!, wanted) < 0) at++;
      if (at < page.length) return comparePositions(page[at]!, wanted) === 0;
      const next = await pages.next();
      if (next.done) return false;
      [page, at] = [next.value, 0];
    }
  };
}

const linksKept = 100;

/** Records in an ended run, and in its audit trail, that another run retries ids of it. Repeating it changes nothing. */
export async function noteRetry(redis: RedisClient, of: string, by: string, action: AuditEntry): Promise<void> {
  const entry = storedEntry({ ...action, action: 'retry', run: by });
  await redis.eval(noteRetryLua, 2, keys.run(of), keys.audit(of), by, entry);
}

// KEYS 1 run  2 audit  ARGV 1 the run that retries it  2 audit entry
const noteRetryLua = `
if redis.call('EXISTS', KEYS[1]) == 0 then return end
local links = {}
for link in string.gmatch(redis.call('HGET', KEYS[1], 'retriedBy') or '', '%S+') do
  if link == ARGV[1] then return end
  links[#links + 1] = link
end
links[#links + 1] = ARGV[1]
redis.call('HSET', KEYS[1], 'retriedBy', table.concat(links, ' ', math.max(1, #links - ${linksKept - 1})))
${noteAuditOfRunLua('ARGV[2]')}
`;
