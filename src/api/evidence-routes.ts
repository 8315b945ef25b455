import { z } from 'zod';
import { ExpungeError, messageOf } from '../errors.ts';
import { htmlReport } from '../ledger/html-report.ts';
import { readOutcomes } from '../ledger/outcome-rows.ts';
import { writeReport } from '../ledger/report.ts';
import type { Run } from '../ledger/run.ts';
import { resources } from '../model/resource.ts';
import { parseSelection } from '../model/selection.ts';
import { FailureReader } from './failures.ts';
import { invokeVerb } from './invoke.ts';
import { Problem } from './problem.ts';
import { type ApiDeps, type Call, type Route, route } from './route.ts';
import { findRunById } from './run-view.ts';
import * as shapes from './shapes.ts';
import { knownTargetOf } from './targets.ts';

const reportQuery = z.strictObject({
  only: z.string().min(1).max(1_000).optional().describe('outcomes and codes, with commas: failed,http_409'),
  format: z.enum(['csv', 'ndjson', 'html']).default('csv'),
  spreadsheet_safe: z.enum(['true', 'false']).default('false'),
});

const types = { csv: 'text/csv; charset=utf-8', ndjson: 'application/x-ndjson', html: 'text/html; charset=utf-8' };

/** What became of rows and ids. */
export const evidenceRoutes: readonly Route[] = [
  route({
    ...{ method: 'get', path: '/runs/{run}/failures', role: 'read', summary: 'rows without success, grouped' },
    answer: shapes.failures,
    handle: ({ deps, params }) => readerOf(deps).of(params.run!),
  }),
  route({
    ...{ method: 'get', path: '/runs/{run}/report', role: 'read', summary: 'what became of every row, as a file' },
    ...{ query: reportQuery, answer: null, type: 'text/csv' },
    handle: report,
  }),
  route({
    ...{ method: 'get', path: '/explain/{resource}/{id}', role: 'read', summary: 'what became of an id in each run' },
    query: z.strictObject({ target: z.string().length(16).describe('fingerprint of the target') }),
    answer: shapes.list(z.looseObject({ run: z.string(), outcome: z.string(), why: z.string() })),
    handle: explain,
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
  const only = query.only === undefined ? null : readSelection(query.only);
  const headers = {
    'content-type': types[format],
    'content-disposition': `attachment; filename="run-${run.id.replace(/[^\w-]/g, '_')}.${format}"`,
  };
  if (format === 'html') return new Response(await htmlReport(deps.session.redis, run), { headers });
  const style = { format, only, spreadsheetSafe: safe === 'true' && format === 'csv' };
  return new Response(rowsOf(deps, run, style), { headers });
}

/** The rows as the reader takes them. If Redis goes meanwhile the connection breaks: a part never looks whole. */
function rowsOf(
  { session, log }: ApiDeps,
  run: Run,
  style: Parameters<typeof writeReport>[1],
): ReadableStream<Uint8Array> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  const sink = (text: string) => writer.write(encoder.encode(text)).then(...isWritten);
  writeReport(readOutcomes(session.redis, run), style, sink)
    .then(() => writer.close())
    .catch((error) => {
      log.warn({ run: run.id, reason: messageOf(error) }, 'a report over HTTP broke off');
      return writer.abort(error);
    })
    .catch(() => {}); // the reader has left
  return readable;
}

const isWritten = [() => true, () => false] as const;

function readSelection(text: string) {
  try {
    return parseSelection(text);
  } catch (error) {
    throw new Problem('invalid', `query.only: ${messageOf(error)}`);
  }
}

async function explain({ deps, params, query, caller }: Call<{ target: string }>) {
  const { resource, id } = params as { resource: string; id: string };
  if (!resources.some((known) => known === resource))
    throw new Problem('invalid', `expected a resource like ${resources.join(', ')}`);
  const target = await knownTargetOf(deps.session, query.target);
  const order = { verb: 'explain', args: [resource, id], target };
  try {
    const { lines } = await invokeVerb(deps, caller, order, () => import('../commands/explain.ts'));
    return { items: lines.map(({ v: _, type: __, ...facts }) => facts) };
  } catch (error) {
    if (error instanceof ExpungeError && error.code === 'USAGE')
      throw new Problem('not_found', error.message, error.next);
    throw error;
  }
}
