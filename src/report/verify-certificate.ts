import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { canonicalJson } from '../model/canonical.ts';
import { type Outcome, type OutcomeCounts, outcomes, perOutcome } from '../model/outcome.ts';
import { type CertificateLine, firstPrevious, hashLine } from './certificate.ts';

/** The place at which a certificate differs from what was written. `line`: its number in the file, from 1. */
type CertificateProblem = { line: number; problem: string };

/** A certificate whose lines fit together. `publicKey`: the key of its signature, base64 of SPKI; null = it is not signed. */
type Certificate = { run: string; root: string; rows: number; counts: OutcomeCounts; publicKey: string | null };

/** Finds the first line that was changed, removed, added or moved. Holds one line in memory. `key`: who must have signed it; null = anyone. */
export async function verifyCertificate(
  lines: AsyncIterable<Buffer | null>,
  key: KeyObject | null,
): Promise<Certificate | CertificateProblem> {
  const reader = new ChainReader();
  for await (const bytes of lines) {
    const problem = reader.read(bytes);
    if (problem !== null) return problem;
  }
  return reader.close(key);
}

/** The lines read so far. */
class ChainReader {
  #line = 0;
  #previous = firstPrevious;
  #run = '';
  #end: CertificateLine | null = null;
  readonly #counts = perOutcome(() => 0);

  /** The problem with the next line, or null. `bytes` is null for a line that is longer than any that is ever written. */
  read(bytes: Buffer | null): CertificateProblem | null {
    this.#line += 1;
    if (this.#end !== null) return this.#at('it comes after the end of the certificate');
    const line = bytes && parseLine(bytes);
    const other = this.#line === 1 && bytes !== null ? otherFile(bytes) : null;
    if (other !== null) return this.#at(other);
    if (line === null) return this.#at('it is not a line of a certificate: it was changed, or is cut off');
    const { hash } = line;
    if (line.n !== this.#line)
      return this.#at(`expected line ${this.#line}, got line ${line.n}: lines were removed, added or moved here`);
    if (hashLine(contentOf(line)) !== hash) return this.#at('it was changed');
    if (line.previous !== this.#previous) {
      const other = `it does not match what line ${this.#line} says about it: one of the two was changed`;
      return { line: Math.max(1, this.#line - 1), problem: other };
    }
    this.#previous = hash as string;
    return this.#take(line);
  }

  /** The result, once all lines of the file were read. */
  close(key: KeyObject | null): Certificate | CertificateProblem {
    const end = this.#end;
    if (end === null) return { line: this.#line + 1, problem: 'the end of the certificate is missing' };
    const rows = this.#line - 2;
    if (end.rows !== rows || canonicalJson(end.counts!) !== canonicalJson(this.#counts))
      return this.#at('its counts do not match the rows');
    const problem = signatureProblem(end, key);
    if (problem !== null) return this.#at(problem);
    const { run, hash, public_key: publicKey } = end as Record<string, string>;
    return { run: run!, root: hash!, rows, counts: this.#counts, publicKey: publicKey ?? null };
  }

  #take(line: CertificateLine): CertificateProblem | null {
    const type = this.#line === 1 ? 'certificate' : line.type;
    if (line.type !== type || (this.#line > 1 && type === 'certificate'))
      return this.#at('this is not how a certificate begins');
    if (type === 'certificate') this.#run = String(line.run);
    else if (type === 'end' && line.run === this.#run) this.#end = line;
    else if (type === 'row' && isOutcome(line.outcome)) this.#counts[line.outcome] += 1;
    else return this.#at('it belongs to another run, or is not in the form of a certificate');
    return null;
  }

  #at(problem: string): CertificateProblem {
    return { line: this.#line, problem };
  }
}

/** Describes a file that cannot be a certificate, by its first line; null for a line of JSON. */
function otherFile(first: Buffer): string | null {
  if (first[0] === 0x1f && first[1] === 0x8b) return 'the file is compressed with gzip: unpack it first, with gunzip';
  const text = first.toString('utf8');
  if (text.includes('"hash"') || text.startsWith('{"')) return null;
  const looks = /[,;\t]/.test(text) ? ': it looks like CSV, as report writes it without --certificate' : '';
  return `the file is not a certificate${looks}`;
}

/** The content that the hash of a line covers. */
function contentOf({ hash: _, ...content }: CertificateLine): CertificateLine {
  if (content.type !== 'end') return content;
  const { signature: __, ...unsigned } = content;
  return unsigned;
}

function isOutcome(word: unknown): word is Outcome {
  return outcomes.some((outcome) => outcome === word);
}

const maxLineLength = 64 * 1024; // twice the length of a line with the longest path and id
const newline = 10;

/** The lines of a file, without their line ends. Yields null for a line that is too long, and for a last line without a line end; nothing follows. */
export async function* certificateLines(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer | null> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const block of blocks) {
    const text = rest.length === 0 ? block : Buffer.concat([rest, block]);
    let start = 0;
    for (let end = text.indexOf(newline); end !== -1; end = text.indexOf(newline, start)) {
      yield text.subarray(start, end);
      start = end + 1;
    }
    rest = text.subarray(start);
    if (rest.length > maxLineLength) break;
  }
  if (rest.length > 0) yield null;
}

/** Parses a line of a certificate that is byte for byte as it is written; otherwise null. */
function parseLine(bytes: Buffer): CertificateLine | null {
  try {
    const line = JSON.parse(bytes.toString('utf8'));
    if (line === null || typeof line !== 'object' || Array.isArray(line)) return null;
    return Buffer.from(canonicalJson(line)).equals(bytes) ? line : null;
  } catch {
    return null;
  }
}

function signatureProblem(
  { hash, signature, public_key: named }: CertificateLine,
  key: KeyObject | null,
): string | null {
  if (!named && !signature) return key === null ? null : 'it is not signed';
  if (typeof named !== 'string' || typeof signature !== 'string') return 'its signature or its public key is missing';
  const own = publicKeyOf(named);
  if (own === null) return 'its public key is not an Ed25519 key';
  if (key !== null && !key.equals(own)) return 'it is signed with a key other than the one in --public-key';
  const bytes = Buffer.from(signature, 'base64');
  const isSigned = verify(null, Buffer.from(hash as string, 'hex'), own, bytes);
  return isSigned && bytes.toString('base64') === signature ? null : 'its signature does not match its root';
}

function publicKeyOf(spki: string): KeyObject | null {
  try {
    const key = createPublicKey({ key: Buffer.from(spki, 'base64'), type: 'spki', format: 'der' });
    return key.asymmetricKeyType === 'ed25519' ? key : null;
  } catch {
    return null;
  }
}
