import { createHash, createHmac, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { isoTime } from '../format.ts';
import type { OutcomeRow } from '../ledger/outcome-rows.ts';
import type { Run } from '../ledger/run.ts';
import { type Canonical, canonicalJson } from '../model/canonical.ts';
import { labelsFrom } from '../model/labels.ts';
import { perOutcome } from '../model/outcome.ts';
import { readDefinitions } from '../model/resource.ts';
import type { Sink } from './report.ts';

// A certificate is NDJSON: a line `certificate`, a line `row` for each row of the run, and a line `end`. Each is canonical JSON. Each has its number
// `n`, the hash of the line before it as `previous`, and the SHA-256 of all its other fields as `hash`. The hash of the end is the `root`.

/** The fields of a line, without its hash. */
export type CertificateLine = { readonly [field: string]: Canonical };

/** `key`: an Ed25519 key, null = unsigned. `salt`: ids are written as HMAC-SHA256 with it, null = as they are. */
export type CertificateOptions = { key: KeyObject | null; salt: Buffer | null };

/** The `previous` of the first line. */
export const firstPrevious = '0'.repeat(64);

/**
 * Writes the certificate of a finalized run, and returns its rows and its root. The same run, key and salt give the same bytes. If `sink` returns
 * false, it ends early, without a root.
 */
export async function writeCertificate(
  pages: AsyncIterable<OutcomeRow[]>,
  run: Run,
  { key, salt }: CertificateOptions,
  sink: Sink,
): Promise<{ rows: number; root: string | null }> {
  const chain = new Chain();
  let wanted = await sink(chain.add({ type: 'certificate', ...headOf(run, salt) }));
  for await (const page of pages) {
    if (!wanted) break;
    let text = '';
    for (const row of page) text += chain.add({ type: 'row', ...rowFacts(row, salt) });
    wanted = await sink(text);
  }
  const rows = chain.lines - 1;
  if (!wanted) return { rows, root: null };
  const { text, root } = endLine(chain, run, { key, salt });
  await sink(text);
  return { rows, root };
}

/** The lines of a certificate, each with the hash that binds it to the previous line. */
class Chain {
  lines = 0;
  previous = firstPrevious;

  /** The content of the next line. */
  next(facts: CertificateLine): CertificateLine {
    this.lines += 1;
    return { ...facts, v: 1, n: this.lines, previous: this.previous };
  }

  add(facts: CertificateLine): string {
    const content = this.next(facts);
    this.previous = hashLine(content);
    return `${canonicalJson({ ...content, hash: this.previous })}\n`;
  }
}

/** The SHA-256 of a line without its hash and its signature. */
export function hashLine(content: CertificateLine): string {
  return createHash('sha256').update(canonicalJson(content)).digest('hex');
}

function headOf(run: Run, salt: Buffer | null): CertificateLine {
  return {
    run: run.id,
    ids: salt === null ? 'plain' : 'hmac-sha256',
    salt_sha256: salt && createHash('sha256').update(salt).digest('hex'),
  };
}

/** The fields of a row, without the excerpt: an API may repeat an id in it, or anything else. */
function rowFacts(row: OutcomeRow, salt: Buffer | null): CertificateLine {
  const { file, line, resource, outcome, status, attempts, settledAt, code } = row;
  const id = salt === null ? { id: row.id } : { id_hash: hashedId(salt, row) };
  return { file, line, resource, ...id, outcome, status, attempts, settled_at: settledAt, code };
}

/** Replaces an id. Anyone with the salt can show that the id is in the certificate. */
function hashedId(salt: Buffer, { resource, id }: Pick<OutcomeRow, 'resource' | 'id'>): string {
  return createHmac('sha256', salt)
    .update(`${resource ?? ''}/${id}`)
    .digest('hex');
}

function endLine(chain: Chain, run: Run, { key, salt }: CertificateOptions): { text: string; root: string } {
  const time = (ms: number) => (ms > 0 ? isoTime(ms) : null);
  const publicKey = key && createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');
  const content = chain.next({
    type: 'end',
    run: run.id,
    state: run.state,
    base_url: run.baseUrl,
    account: run.account,
    list_sha256: salt === null ? run.sha256 : null, // it has no salt, so whoever guesses the list could test the guess
    plan_sha256: run.plan || null,
    plan_changed: run.planChanged || null,
    in_doubt: run.doubt || null,
    rows: run.rows,
    counts: perOutcome((outcome) => run.counts[outcome]),
    ...(run.definitions !== '' && { resources: readDefinitions(run.definitions) as Canonical }), // left out if all are built in
    ...(run.labels !== '' && { labels: labelsFrom(run.labels) }), // left out if there are none
    submitted_by: run.createdBy,
    submitted_at: time(run.createdAt),
    started_at: time(run.startedAt),
    ended_at: time(run.endedAt),
    public_key: publicKey,
  });
  const root = hashLine(content);
  const signature = key && sign(null, Buffer.from(root, 'hex'), key).toString('base64');
  return { text: `${canonicalJson({ ...content, hash: root, signature })}\n`, root };
}
