// Describes errors of files, programs, ports, connections and TLS for people, with advice.

/** Why something failed, and what to do next; `next` is null if no advice is known. */
export type Explanation = { words: string; next: string | null };

const path = 'check the name; one without a leading / begins at the folder in which the command runs';
const rights = 'let this user use it (chmod, chown), or name another one';
const place = 'name a place that can be written';
const room = 'make room, or name a place on another disk';

const files: Record<string, readonly [words: string, next: string | null]> = {
  ENOENT: ['not found', path],
  ENOTDIR: ['not found: a part of its path is no folder', path],
  ELOOP: ['its symbolic links form a loop', path],
  ENAMETOOLONG: ['its name is too long', path],
  EISDIR: ['expected a file, got a folder', 'name a file in it'],
  EACCES: ['permission denied', rights],
  EPERM: ['permission denied', rights],
  EROFS: ['the file system is read-only', place],
  ENOSPC: ['no space left on the disk', room],
  EDQUOT: ['the disk quota is used up', room],
  EFBIG: ['the file is larger than allowed', 'raise the limit (ulimit -f), or name a place on another disk'],
  EMFILE: ['this process may open no more files', 'raise the limit: ulimit -n'],
  ENFILE: ['this machine may open no more files', 'close other programs, or raise fs.file-max'],
  EEXIST: ['it exists already', place],
  ENOTEMPTY: ['the folder is not empty', place],
  EBUSY: ['it is in use, or a file that is mounted by itself', 'mount its folder instead of the file'],
  EXDEV: ['it is on another file system', place],
  EIO: ['the disk reports an error', 'look into the log of the system'],
  ESTALE: ['the server of this network file system has lost it', 'mount it again'],
  ENXIO: ['no process has this pipe, socket or device open', path],
  ENODEV: ['there is no such device', path],
};

/** Explains an error of a file or folder. */
export function explainFileError(error: unknown): Explanation {
  return explain(files, error);
}

export function describeFileError(error: unknown): string {
  return explainFileError(error).words;
}

/** Whether an error comes from a file or folder. */
export function isFileError(error: unknown): boolean {
  return Object.hasOwn(files, systemCode(error));
}

const programs: typeof files = {
  ENOENT: ['there is no such program', 'install it, or give its whole path'],
  EACCES: ['it is not executable', 'make it executable (chmod +x), or give another one'],
  EPERM: ['it is not executable', 'make it executable (chmod +x), or give another one'],
  ENOEXEC: ['it is not a program', 'a script begins with a line like #!/bin/sh'],
  E2BIG: ['its arguments are too long', null],
  ENOMEM: ['there is no memory left', null],
  EAGAIN: ['no more processes may be started', 'raise the limit: ulimit -u'],
};

/** Describes why a program could not be started. */
export function describeProgramError(error: unknown): string {
  return explain({ ...files, ...programs }, error).words;
}

const listening: typeof files = {
  EADDRINUSE: ['something listens there already', 'choose another port, or end what listens there'],
  EADDRNOTAVAIL: ['this machine has no such address', 'choose an address of this machine; 0.0.0.0 means all of them'],
  EACCES: ['no permission to listen there', 'choose a port from 1024 on'],
  EPERM: ['no permission to listen there', 'choose a port from 1024 on'],
  ENOTFOUND: ['no such host', 'choose an address of this machine; 0.0.0.0 means all of them'],
  EAI_AGAIN: ['its host name cannot be resolved', 'give the address instead of the name'],
  EAFNOSUPPORT: ['this machine has no addresses of this kind', 'choose an address of this machine'],
  ERR_SOCKET_BAD_PORT: ['there is no such port', 'choose a port from 0 to 65535'],
};

/** Explains why a port could not be opened. */
export function explainListenError(error: unknown): Explanation {
  return explain({ ...files, ...listening }, error);
}

const onlyHttp2: [string, string] = [
  'it speaks only HTTP/2 on this port',
  'enable HTTP/1.1 there, or send the requests through a proxy that speaks both',
];
const network = 'check host and port, and that nothing between drops the connection';
const connections: typeof files = {
  ECONNREFUSED: ['connection refused', 'check host and port, and that it runs'],
  ECONNRESET: ['connection reset', 'check that it speaks this protocol on this port'],
  ECONNABORTED: ['connection reset', network],
  EPIPE: ['connection reset', network],
  UND_ERR_SOCKET: ['connection closed before an answer came', 'check that it speaks this protocol on this port'],
  ETIMEDOUT: ['connection timed out', network],
  CONNECT_TIMEOUT: ['connection timed out', network],
  UND_ERR_CONNECT_TIMEOUT: ['connection timed out', network],
  UND_ERR_HEADERS_TIMEOUT: ['no answer in time', network],
  UND_ERR_BODY_TIMEOUT: ['the answer broke off', network],
  ENOTFOUND: ['no such host', 'check its spelling, and that this machine can look it up'],
  EAI_AGAIN: ['its host name cannot be resolved', 'check the name service (DNS) of this machine'],
  EHOSTUNREACH: ['no route to the host', 'check the network of this machine'],
  ENETUNREACH: ['no route to the host', 'check the network of this machine'],
  ENETDOWN: ['the network is down', 'check the network of this machine'],
  EADDRNOTAVAIL: ['no free port is left for a connection', 'use fewer connections at once: --max-concurrency'],
  ENOENT: ['no such socket', path],
  EACCES: ['no permission for the socket', rights],
  EPERM: ['this machine forbids the connection', 'check its firewall'],
  UND_ERR_PRX_TLS: ['TLS to the proxy failed', 'check --proxy: most proxies are reached by http://'],
  UND_ERR_PRX_CONN: ['the proxy closed the connection', 'check --proxy, and that it may reach this host'],
  UND_ERR_ABORTED: ['the proxy refused to pass it on', 'check --proxy, and the user and password in it'],
  UND_ERR_INVALID_ARG: ['the address cannot be used', 'check its spelling'],
  UNASKED_CONTINUE: [
    'it sends 100 Continue, which was not asked for, and expunge cannot read what follows',
    'ask whoever runs the API, or the proxy before it',
  ],
  ONLY_HTTP2: onlyHttp2,
  UND_ERR_HEADERS_OVERFLOW: [
    'the headers of its answer are larger than 64 kB',
    'ask whoever runs the API, or the proxy before it',
  ],
};

/** Explains a failed connection, from its error or from the stored code of one; other text stays unchanged. */
export function explainConnectionError(error: unknown): Explanation {
  if (typeof error === 'string' && !isCode(error)) return { words: error, next: null };
  const failure = typeof error === 'string' ? { code: error } : innermost(error);
  const code = systemCode(failure);
  const tls = describeTlsError(failure);
  if (tls !== null) return { words: tls, next: tlsAdvice.find(([pattern]) => pattern.test(tls))![1] };
  if (/^HPE_/.test(code)) return { words: 'it does not speak HTTP on this port', next: 'check host and port' };
  if (code === 'UND_ERR_ABORTED' && failure instanceof Error) return explainProxyError(failure);
  return explain({ ...files, ...connections }, failure);
}

export function describeConnectionError(error: unknown): string {
  return explainConnectionError(error).words;
}

/** Whether an error comes from the network or from TLS. */
export function isConnectionError(error: unknown): boolean {
  return Object.hasOwn(connections, systemCode(error)) || describeTlsError(error) !== null;
}

/** Whether a text is a code like ENOENT, UND_ERR_SOCKET or HPE_INVALID_CONSTANT. */
function isCode(text: string): boolean {
  return /^[A-Z][A-Z0-9_/]+$/.test(text);
}

/** The first inner error of an error that wraps others, for example because every address of a name failed. */
function innermost(error: unknown): unknown {
  const { errors, cause } = (error ?? {}) as { errors?: unknown[]; cause?: unknown };
  const inner = errors?.[0] ?? cause;
  return inner instanceof Error && (systemCode(error) === '' || errors) ? innermost(inner) : error;
}

function explainProxyError({ message }: Error): Explanation {
  const status = /Proxy response \((\d{3})\)/.exec(message)?.[1];
  if (status === undefined) return { words: 'the connection was closed', next: null };
  const [words, next] = connections.UND_ERR_ABORTED!;
  return { words: `${words}: ${status}`, next };
}

/** Describes an error of TLS; null for any other error. */
function describeTlsError(error: unknown): string | null {
  const code = systemCode(error);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return describeNameMismatch(error as AltnameError);
  const known = tls.find(([pattern]) => pattern.test(code))?.[1];
  return (
    known ?? (/^(ERR_SSL_|ERR_TLS_|CERT_|DEPTH_ZERO_|HOSTNAME_MISMATCH)/.test(code) ? `TLS failed (${code})` : null)
  );
}

/** The words for a code of TLS; a code can have a slash: `ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE`. */
const tls: [RegExp, string][] = [
  [/^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_SELF_)/, 'its certificate is signed by an authority that is not trusted here'],
  [/^CERT_HAS_EXPIRED$/, 'its certificate has expired'],
  [/^CERT_NOT_YET_VALID$/, 'its certificate is not valid yet, or the clock of this machine is wrong'],
  [/^CERT_REVOKED$/, 'its certificate was revoked'],
  [/ALERT_CERTIFICATE_REQUIRED$/, 'it wants a certificate from us'],
  [/ALERT_NO_APPLICATION_PROTOCOL$/, onlyHttp2[0]],
  [/ALERT_(HANDSHAKE_FAILURE)$/, 'it breaks off the TLS handshake: perhaps it wants a certificate from us'],
  [/ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_\w+)$/, 'it does not take our certificate'],
  [/^ERR_SSL_(UNSUPPORTED_PROTOCOL$|.*ALERT_PROTOCOL_VERSION$)/, 'it speaks no version of TLS that we do'],
  [/^(ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)|EPROTO)$/, 'it does not speak TLS on this port'],
];

/** Whether a server broke off the TLS handshake because of our certificate, or because it got none. */
export function wantsCertificate(code: string): boolean {
  return /certificate from us|our certificate/.test(describeTlsError({ code }) ?? '');
}

type AltnameError = { host?: string; cert?: { subjectaltname?: string } };

function describeNameMismatch({ host = 'this host', cert }: AltnameError): string {
  const names = (cert?.subjectaltname ?? 'another name').replaceAll('IP Address:', '').replaceAll('DNS:', '');
  return `its certificate is for ${names}, not for ${host}`;
}

/** Advice for HTTP servers; for Redis see `redis/errors.ts`. */
const tlsAdvice: [RegExp, string][] = [
  [/not trusted here/, 'name that authority with --ca-file, if it is yours'],
  [/certificate (has expired|is not valid|was revoked)/, 'have the certificate of that server renewed'],
  [/certificate is for /, 'use the host that its certificate is for'],
  [/only HTTP\/2/, onlyHttp2[1]],
  [/does not speak TLS/, 'use its TLS port, or http:// (see --allow-http) where it has none'],
  [
    /certificate from us|our certificate/,
    'name a certificate with --cert-file and its key with --key-file, if the API gave you one',
  ],
  [/./, 'see what it presents: openssl s_client -connect HOST:PORT'],
];

/** The explanation of a code; otherwise the code itself, which can be searched for. */
function explain(known: typeof files, error: unknown): Explanation {
  const code = systemCode(error);
  const [words, next] = known[code] ?? [code === '' ? firstLine(error) : `the system says ${code}`, null];
  return { words, next };
}

function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message || error.name : error).split('\n', 1)[0]!;
}

/** The system code of an error ('ENOENT', 'ECONNREFUSED', …), or '' if it has none. */
export function systemCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : '';
}
