import { createPrivateKey, createPublicKey, type KeyObject, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { ExpungeError, messageOf, readNamedFile } from '../../errors.ts';
import { count } from '../../format.ts';
import type { OutcomeRow } from '../../ledger/outcome-rows.ts';
import { isFinalized, type Run } from '../../ledger/run.ts';
import type { Advice } from '../../model/to-type.ts';
import { type CertificateOptions, writeCertificate } from '../../report/certificate.ts';
import { type Sink, writeReportFile } from '../../report/report.ts';
import { systemCode } from '../../system-errors.ts';
import { type Invocation, jsonLines } from '../command.ts';
import type { Options } from '../options.ts';
import { lineWriter } from '../session.ts';
import { toSink } from './report-sink.ts';

/** A run, its rows in input order, and a count of them in the ledger: from Redis, or from a server. */
export type Evidence = {
  run: Run;
  rows(): AsyncIterable<OutcomeRow[]>;
  verify(): Promise<{ problem: string | null }>;
};

/** `report --certificate` of a run that has ended, to a file or to stdout. Returns the exit code. Repeating it gives the same bytes. */
export async function certify(invocation: Invocation, evidence: Evidence): Promise<number> {
  const { run } = evidence;
  const { options, stdout, stderr } = invocation;
  const { output, signKey, hashIds } = options;
  await requireCertifiable(evidence);
  const certificate = {
    key: signKey === undefined ? null : readSignKey(signKey),
    salt: hashIds === undefined ? null : readSalt(hashIds),
  };
  const write = (sink: Sink) => writeCertificate(evidence.rows(), run, certificate, sink);
  const { rows, root } = await (output === undefined
    ? write(toSink(stdout, run.id))
    : writeReportFile(output, run.id, write));
  if (root === null) return 0; // the reader closed stdout
  lineWriter(stderr)(`${count(rows)} rows in ${output ?? 'the certificate'}, its root is ${root}`);
  const signed = { signed: certificate.key !== null, hashed: certificate.salt !== null };
  jsonLines(stdout, options.json)('certificate', { run: run.id, rows, file: output, root, ...signed });
  return 0;
}

/** Throws unless the run is finalized and its ledger adds up: a certificate states the outcome of every row for good. */
async function requireCertifiable({ run, verify }: Evidence): Promise<void> {
  if (!isFinalized(run.state))
    throw new ExpungeError('USAGE', `run ${run.id} is ${run.state}; only a run that has ended can be certified`, {
      next: (toType) => `wait for its end: ${toType('status', run.id, '--watch')}`,
    });
  const { problem } = await verify();
  if (problem !== null) throw new ExpungeError('INTERNAL', `run ${run.id} is not certified: ${problem}`);
}

/** Checks the options that `--certificate` needs or excludes. Throws USAGE. */
export function refuseCertificateConflicts({ options }: Invocation): void {
  const named = (names: readonly (keyof Options)[]) => names.filter((name) => options[name] !== undefined);
  const alone = named(['signKey', 'hashIds']);
  const next: Advice = (toType) => `${toType('help', 'certificates')} explains what a certificate is`;
  if (options.certificate !== true && alone.length > 0)
    throw new ExpungeError('USAGE', '--sign-key and --hash-ids need --certificate', { next: 'add --certificate' });
  if (options.certificate === true && named(['format', 'only', 'join', 'verify', 'spreadsheetSafe']).length > 0)
    throw new ExpungeError(
      'USAGE',
      '--certificate cannot be combined with --format, --only, --join, --verify or --spreadsheet-safe: it always has all rows',
      { next },
    );
}

const makeKey = 'make one: openssl genpkey -algorithm ed25519 -out key.pem';

/** The key in a PEM file. Throws USAGE for a key of another type; never shows the contents of the file. */
function readSignKey(path: string): KeyObject {
  return readKey(
    '--sign-key',
    path,
    'an Ed25519 private key in PEM (PKCS #8, not encrypted)',
    makeKey,
    createPrivateKey,
  );
}

/** The public key in a PEM file. */
export function readPublicKey(path: string): KeyObject {
  const next = 'derive it: openssl pkey -in key.pem -pubout -out public.pem';
  return readKey('--public-key', path, 'an Ed25519 public key in PEM', next, createPublicKey);
}

function readKey(flag: string, path: string, wanted: string, next: string, parse: (pem: string) => KeyObject) {
  const key = parsed(readNamedFile(flag, path, 'USAGE'), parse);
  if (key?.asymmetricKeyType === 'ed25519') return key;
  throw new ExpungeError('USAGE', `${flag} ${path}: expected ${wanted}`, { next });
}

function parsed(pem: string, parse: (pem: string) => KeyObject): KeyObject | null {
  try {
    return parse(pem);
  } catch {
    return null; // the words of OpenSSL do not help
  }
}

const saltBytes = 32;

/** The salt in a file, 64 hex digits. A missing file is created, readable by its owner only. Throws USAGE for any other contents. */
function readSalt(path: string): NonNullable<CertificateOptions['salt']> {
  try {
    writeFileSync(path, `${randomBytes(saltBytes).toString('hex')}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (systemCode(error) !== 'EEXIST')
      throw new ExpungeError('USAGE', `--hash-ids ${path}: ${messageOf(error)}`, { cause: error });
  }
  const text = readNamedFile('--hash-ids', path, 'USAGE');
  if (/^[0-9a-f]{64}$/.test(text)) return Buffer.from(text, 'hex');
  throw new ExpungeError('USAGE', `--hash-ids ${path}: expected a salt of ${2 * saltBytes} hex digits`, {
    next: 'name the salt file of another certificate, or a file that does not exist yet: it is then made',
  });
}
