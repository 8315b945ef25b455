import { createHash } from 'node:crypto';
import { isoTime } from '../format.ts';
import type { Run } from '../ledger/run.ts';
import { labelsFrom } from '../model/labels.ts';
import { perOutcome } from '../model/outcome.ts';
import { readDefinitions } from '../model/resource.ts';
import { parseStrictJson } from '../strict-json.ts';
import type { ReportStyle, Sink } from './report.ts';

/** The report file of a manifest: how it was written, its size and its SHA-256. */
export type WrittenReport = { format: ReportStyle['format']; spreadsheet_safe: boolean; bytes: number; sha256: string };

/** A manifest as parsed JSON. */
export type ReportManifest = { readonly [field: string]: unknown } & { run: string; report: WrittenReport };

/**
 * What an ended run says of itself, with the SHA-256 of its list, of its definitions and of its report. The same run and the same style always give
 * the same manifest, so anyone with the run can compute it again.
 */
export function manifestOf(run: Run, report: WrittenReport): ReportManifest {
  const time = (ms: number) => (ms > 0 ? isoTime(ms) : null);
  return {
    v: 1,
    type: 'manifest',
    run: run.id,
    state: run.state,
    base_url: run.baseUrl,
    account: run.account,
    list_sha256: run.sha256,
    plan: run.plan || null,
    plan_changed: run.planChanged || null,
    in_doubt: run.doubt || null,
    rows: run.rows,
    totals: perOutcome((outcome) => run.counts[outcome]),
    definitions: readDefinitions(run.definitions),
    definitions_sha256: createHash('sha256').update(run.definitions).digest('hex'),
    labels: labelsFrom(run.labels),
    submitted_by: run.createdBy,
    submitted_at: time(run.createdAt),
    started_at: time(run.startedAt),
    ended_at: time(run.endedAt),
    report,
  };
}

/** Counts and hashes what passes on to `sink`. */
export function hashingSink(sink: Sink): { sink: Sink; written(): Pick<WrittenReport, 'bytes' | 'sha256'> } {
  const hash = createHash('sha256');
  let bytes = 0;
  return {
    sink: (text) => {
      hash.update(text);
      bytes += Buffer.byteLength(text);
      return sink(text);
    },
    written: () => ({ bytes, sha256: hash.digest('hex') }),
  };
}

/** Reads a manifest. Returns null for any other text, also for one with a key twice: readers would differ about its value. */
export function readManifest(text: string): ReportManifest | null {
  try {
    const found = parseStrictJson(text) as Partial<ReportManifest> | null;
    const { format, sha256 } = found?.report ?? {};
    const isManifest = found?.type === 'manifest' && found.v === 1 && typeof found.run === 'string';
    return isManifest && (format === 'csv' || format === 'ndjson') && typeof sha256 === 'string'
      ? (found as ReportManifest)
      : null;
  } catch {
    return null;
  }
}

/** The fields in which a manifest differs from what the run says now, each with both values. Empty: it holds. */
export function manifestDifferences(manifest: ReportManifest, now: ReportManifest): string[] {
  const [before, after] = [fieldsOf(manifest), fieldsOf(now)];
  const names = [...new Set([...before.keys(), ...after.keys()])];
  const shown = (value: string | undefined) => value ?? 'nothing';
  return names
    .filter((name) => before.get(name) !== after.get(name))
    .map((name) => `${name} is ${shown(before.get(name))}, and the run says ${shown(after.get(name))}`);
}

/** The fields of an object by their paths, as in `totals.deleted`, with their values as JSON. */
function fieldsOf(value: object, path = ''): Map<string, string> {
  return new Map(
    Object.entries(value).flatMap(([name, field]): [string, string][] =>
      typeof field === 'object' && field !== null && Object.keys(field).length > 0
        ? [...fieldsOf(field, `${path}${name}.`)]
        : [[path + name, JSON.stringify(field)]],
    ),
  );
}
