import { z } from 'zod';
import { messageOf } from '../errors.ts';
import { type OutcomeRow, readOutcomes } from '../ledger/outcome-rows.ts';
import { isFinalized, type Run } from '../ledger/run.ts';
import { isSuccess, sumOutcomes } from '../model/outcome.ts';
import { resources } from '../model/resource.ts';
import { parseSelection } from '../model/selection.ts';
import type { Target } from '../model/target.ts';
import {
  type Appearance,
  isSearchable,
  noRunHas,
  type Search,
  searchRuns,
  toAppearances,
} from '../operations/search-runs.ts';
import type { Session } from '../operations/session.ts';
import { type Verification, verify } from '../operations/verify-run.ts';
import { htmlReport } from '../report/html-report.ts';
import { type Sink, writeReport } from '../report/report.ts';
import { whyText } from '../terminal/explain-text.ts';
import { Problem, parsedAs } from './problem.ts';
import { type ApiDeps, type Call, type Route, route } from './route.ts';
import { findRunById } from './run-view.ts';
import * as shapes from './shapes.ts';
import { findKnownTarget } from './targets.ts';

const reportQuery = z.strictObject({
  only: z.string().min(1).max(1_000).optional().describe('outcomes and codes, with commas: failed,http_409'),
  format: z.enum(['csv', 'ndjson', 'html']).default('csv'),
  spreadsheet_safe: z.enum(['true', 'false']).default('false'),
});

const types = { csv: 'text/csv; charset=utf-8', ndjson: 'application/x-ndjson', html: 'text/html; charset=utf-8' };

function plainType(type: string): string {
  return type.split(';')[0]!;
}

/** A resource that runs can have ids of. */
const searchableField = z.string().refine(isSearchable, { error: () => `expected ${resources.join(', ')}` });

/** Routes for the outcomes of rows and ids. */
export const evidenceRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/runs/{run}/failures',
    role: 'read',
    summary: 'rows without success, grouped',
    answer: shapes.failures,
    handle: ({ deps, params }) => readerOf(deps).of(params.run!),
  }),
  route({
    method: 'get',
    path: '/runs/{run}/report',
    role: 'read',
    summary: 'the outcome of every row, as a file',
    query: reportQuery,
    answer: null,
    types: Object.values(types).map(plainType),
    handle: report,
  }),
  route({
    method: 'get',
    path: '/runs/{run}/verification',
    role: 'read',
    summary: 'whether every row has one outcome',
    answer: shapes.verification,
    handle: verification,
  }),
  route({
    method: 'get',
    path: '/explain/{resource}/{id}',
    role: 'read',
    about: 'target',
    summary: 'the outcome of an id in each run',
    query: z.strictObject({ target: z.string().length(16).describe('fingerprint of the target') }),
    answer: shapes.list(z.looseObject({ run: z.string(), outcome: z.string(), why: z.string() })),
    handle: explain,
  }),
  route({
    method: 'get',
    path: '/targets/{fp}/found',
    role: 'read',
    summary: 'an id in each run, as --server shows it',
    query: z.strictObject({ resource: searchableField, id: z.string().min(1).max(2_000) }),
    answer: shapes.found,
    handle: find,
  }),
];

const readers = new WeakMap<ApiDeps['session'], FailureReader>();

function readerOf({ session }: ApiDeps): FailureReader {
  const reader = readers.get(session) ?? new FailureReader(session);
  readers.set(session, reader);
  return reader;
}

async function report({ deps, params, query }: Call<z.output<typeof reportQuery>>): Promise<Response> {
  const run = await findRunById(deps.session, params.run!);
  const { format, spreadsheet_safe: safe } = query;
  const only = query.only === undefined ? null : parsedAs('query.only', query.only, parseSelection);
  const headers = {
    'content-type': types[format],
    'content-disposition': `attachment; filename="run-${run.id.replace(/[^\w-]/g, '_')}.${format}"`,
  };
  const end = deps.streams.begin('downloads');
  if (format === 'html') return new Response(await htmlReport(deps.session.redis, run).finally(end), { headers });
  const style = { format, only, spreadsheetSafe: safe === 'true' && format === 'csv' };
  const write = (sink: Sink) => writeReport(readOutcomes(deps.session.redis, run), style, sink);
  return new Response(textOf(deps, run, write, end), { headers });
}

async function verification({ deps: { session, streams }, params }: Call): Promise<Verification> {
  const run = await findRunById(session, params.run!);
  const end = streams.begin('downloads');
  return verify(session.redis, run).finally(end);
}

/**
 * Streams a text at the pace of the reader; calls `end` once the reader has all of it or has left. If Redis fails in between, the connection breaks,
 * so that a part never looks complete.
 */
function textOf(
  { log }: ApiDeps,
  run: Run,
  write: (sink: Sink) => Promise<unknown>,
  end: () => void,
): ReadableStream<Uint8Array> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  write((text) => writer.write(encoder.encode(text)).then(...isWritten))
    .then(() => writer.close())
    .catch((error) => {
      log.warn({ run: run.id, reason: messageOf(error) }, 'a report over HTTP broke off');
      return writer.abort(error);
    })
    .catch(() => {}) // the reader has left
    .finally(end);
  return readable;
}

const isWritten = [() => true, () => false] as const;

async function explain(call: Call<{ target: string }>) {
  const { deps, params, query } = call;
  const resource = params.resource!;
  if (!isSearchable(resource)) throw new Problem('invalid', `expected a resource like ${resources.join(', ')}`);
  const search = searchOf(call, await findKnownTarget(deps.session, query.target), { resource, id: params.id! });
  const found = await searchWith(call, search);
  if (found.length > 0) return { items: found.flatMap(({ run, found }) => toAppearances(run, found, Date.now())) };
  const { message, next } = noRunHas(search);
  throw new Problem('not_found', message, next);
}

async function find(call: Call<Search['wanted']>) {
  const { deps, params, query } = call;
  const warnings: string[] = [];
  const search = searchOf(call, await findKnownTarget(deps.session, params.fp!), query, warnings);
  return { items: await searchWith(call, search), searched: search.searched, warnings };
}

/** Searches on the connection of the server, for as long as the client waits. */
function searchOf(
  { deps: { session }, context }: Pick<Call, 'deps' | 'context'>,
  target: Target,
  wanted: Search['wanted'],
  warnings: string[] = [],
): Search {
  const onProblem = (words: string) => void warnings.push(words);
  const searched = { runs: 0, rows: 0 };
  return { redis: session.redis, target, wanted, searched, onProblem, stop: context.req.raw.signal };
}

async function searchWith({ deps: { streams } }: Pick<Call, 'deps'>, search: Search): Promise<Appearance[]> {
  const end = streams.begin('searches');
  const found: Appearance[] = [];
  try {
    for await (const appearance of searchRuns(search)) found.push(appearance);
    return found;
  } catch (error) {
    throw search.stop?.aborted ? new Problem('unavailable', 'the client has disconnected') : error;
  } finally {
    end();
  }
}

/** Rows without success that ended in the same way. */
export type FailureGroup = {
  outcome: string;
  code: string;
  words: string;
  count: number;
  samples: Pick<OutcomeRow, 'file' | 'line' | 'resource' | 'id' | 'excerpt'>[];
};

const samplesOfGroup = 5;
const freshMs = 5_000;
const maxKept = 20;

/** Groups the rows of runs that had no success. Reading a large run takes a while, so all viewers share what was read. */
class FailureReader {
  readonly #session: Session;
  /** `at`: when the groups were read; infinite during the reading. */
  readonly #kept = new Map<string, { at: number; isFinal: boolean; groups: Promise<FailureGroup[]> }>();

  constructor(session: Session) {
    this.#session = session;
  }

  async of(id: string): Promise<{ items: FailureGroup[] }> {
    const run = await findRunById(this.#session, id);
    const known = this.#kept.get(id);
    const isFinal = isFinalized(run.state);
    const isFresh = known?.isFinal || (!isFinal && known !== undefined && performance.now() - known.at < freshMs);
    if (isFresh) return { items: await known.groups };
    const reading = { at: Number.POSITIVE_INFINITY, isFinal, groups: this.#read(run) };
    this.#kept.delete(id);
    this.#kept.set(id, reading);
    for (const oldest of [...this.#kept.keys()].slice(0, -maxKept)) this.#kept.delete(oldest);
    try {
      const items = await reading.groups;
      reading.at = performance.now();
      return { items };
    } catch (error) {
      if (this.#kept.get(id) === reading) this.#kept.delete(id);
      throw error;
    }
  }

  /** Reads the groups of a run. For an ended run it reads until it has found all, which are often few. */
  async #read(run: Run): Promise<FailureGroup[]> {
    const groups = new Map<string, FailureGroup>();
    const all = isFinalized(run.state)
      ? sumOutcomes(run.counts, (outcome) => !isSuccess(outcome))
      : Number.POSITIVE_INFINITY;
    let found = 0;
    if (all === 0) return [];
    for await (const page of readOutcomes(this.#session.redis, run)) {
      for (const row of page) {
        if (row.outcome === 'pending' || isSuccess(row.outcome)) continue;
        addToGroup(groups, run, row);
        found += 1;
      }
      if (found >= all) break;
    }
    return [...groups.values()].sort((a, b) => b.count - a.count);
  }
}

function addToGroup(groups: Map<string, FailureGroup>, run: Run, row: OutcomeRow): void {
  const { outcome, code, file, line, resource, id, excerpt } = row;
  const key = `${outcome} ${code}`;
  const words = () => whyText(run, { ...row, open: null }, Date.now());
  const group = groups.get(key) ?? { outcome, code, words: words(), count: 0, samples: [] };
  group.count += 1;
  if (group.samples.length < samplesOfGroup) group.samples.push({ file, line, resource, id, excerpt });
  groups.set(key, group);
}
