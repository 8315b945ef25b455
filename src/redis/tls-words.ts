import { systemCode } from '../errors.ts';

/** What is wrong with TLS, in words; null where an error is not about that. */
export function tlsWords(error: unknown): string | null {
  const code = systemCode(error);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return otherName(error as AltnameError);
  return words.find(([pattern]) => pattern.test(code))?.[1] ?? null;
}

const words: [RegExp, string][] = [
  [/^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_SELF_)/, 'its certificate is signed by an authority that is not trusted here'],
  [/^CERT_HAS_EXPIRED$/, 'its certificate has expired'],
  [/^CERT_NOT_YET_VALID$/, 'its certificate is not valid yet, or the clock of this machine is wrong'],
  [/^ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED$/, 'it wants a certificate from us'],
  [/^ERR_SSL_\w*ALERT_(HANDSHAKE_FAILURE)$/, 'it breaks off the TLS handshake: perhaps it wants a certificate from us'],
  [/^ERR_SSL_\w*ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE_\w+)$/, 'it does not take our certificate'],
  [/^(ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)|EPROTO)$/, 'it does not speak TLS on this port'],
];

type AltnameError = { host?: string; cert?: { subjectaltname?: string } };

function otherName({ host = 'this host', cert }: AltnameError): string {
  const names = (cert?.subjectaltname ?? 'another name').replaceAll('IP Address:', '').replaceAll('DNS:', '');
  return `its certificate is for ${names}, not for ${host}`;
}

/** What to do about such words; null for others. */
export function tlsAdvice(said: string): string | null {
  return advice.find(([pattern]) => pattern.test(said))?.[1] ?? null;
}

const advice: [RegExp, string][] = [
  [/not trusted here/, 'name that authority with --redis-ca-file, if it is yours'],
  [/certificate (has expired|is not valid)/, 'have the certificate of that Redis renewed'],
  [/certificate is for /, 'use that host in REDIS_URL, or say which name is right with --redis-server-name'],
  [/certificate from us/, 'name one with --redis-cert-file, and its key with --redis-key-file'],
  [/take our certificate/, 'name one that its authority has signed with --redis-cert-file and --redis-key-file'],
  [/does not speak TLS/, 'use its TLS port, or redis:// where it has none'],
];
