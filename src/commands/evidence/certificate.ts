import { createHash } from 'node:crypto';
import { exitCodes } from '../../errors.ts';
import { count } from '../../format.ts';
import { openInputs } from '../../input/open-inputs.ts';
import { certificateLines, verifyCertificate } from '../../report/verify-certificate.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { infoWriter, lineWriter } from '../session.ts';
import { readPublicKey } from './certify.ts';

/** `certificate verify`: checks that a certificate is as it was written, and shows who signed it. Needs neither Redis nor settings. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, stdout, stderr } = invocation;
  const path = args[0]!;
  const key = options.publicKey === undefined ? null : readPublicKey(options.publicKey);
  const [file] = await openInputs([path]);
  const found = await verifyCertificate(certificateLines(file!.open()), key);
  const print = jsonLines(stdout, options.json);
  if ('problem' in found) {
    stderr.write(`${path}:${found.line}: ${found.problem}\n`);
    print('certificate', { file: path, ok: false, ...found });
    return exitCodes.INTERNAL.exit;
  }
  const { run, root, rows, counts, publicKey } = found;
  lineWriter(stderr)(`${path} is whole: run ${run}, ${count(rows)} rows, root ${root}`);
  const fingerprint = publicKey && fingerprintOf(publicKey);
  for (const line of signatureLines(fingerprint, key !== null)) infoWriter(invocation)(line);
  print('certificate', { file: path, ok: true, run, root, rows, ...counts, key_sha256: fingerprint });
  return exitCodes.OK.exit;
}

/** The SHA-256 of a public key in SPKI. */
function fingerprintOf(spki: string): string {
  return createHash('sha256').update(Buffer.from(spki, 'base64')).digest('hex');
}

/** What a reader needs to trust the root: a key, or a copy of the root. */
function signatureLines(fingerprint: string | null, isExpected: boolean): string[] {
  if (fingerprint === null) return ['  It is not signed: compare the root with the one you were given'];
  if (isExpected) return ['  Signed with the key of --public-key'];
  return [`  Signed with the key ${fingerprint}, which the file itself names: compare it, or add --public-key`];
}
