import { plainPath } from './url-path.ts';

// A pattern of base URLs: a host name, and around it, if wanted, the protocol, the port and the first segments of the path. `api.example.com` ·
// `https://api.example.com/eu` · `*.staging.example.com` · `localhost:*`

/** The host of a base URL that matches one of the patterns, as a person has to type it; null if none matches. */
export function protectedHost(patterns: readonly string[] | undefined, baseUrl: string): string | null {
  const isProtected = patterns?.some((pattern) => matchesTarget(pattern, baseUrl)) ?? false;
  return isProtected ? plainHost(new URL(baseUrl).hostname) : null;
}

type Pattern = { protocol: string | null; hostname: string; port: string | null; path: string };

/**
 * The pattern in normal form. Throws an Error that quotes it and gives examples. With `isStrict` a `*` can only stand for the first labels of a host
 * name, because `api.*` would also match `api.evil.com`.
 */
export function targetPattern(text: string, isStrict: boolean): string {
  const pattern = read(text.trim());
  if (pattern === null)
    throw new Error(
      `expected a pattern like api.example.com, *.example.com or https://api.example.com/eu, got "${text}"`,
    );
  if (isStrict && !/^(\*|(\*\.)?[^*]+)$/.test(pattern.hostname))
    throw new Error(`"${text}": a * can only be the first label, like *.example.com, or the port`);
  const { protocol, hostname, port, path } = pattern;
  return `${protocol === null ? '' : `${protocol}//`}${hostname}${port === null ? '' : `:${port}`}${path}`;
}

/**
 * Whether a base URL in normal form matches a pattern in normal form. What the pattern leaves out matches anything: any protocol, any port, any path.
 * A path matches by whole segments.
 */
export function matchesTarget(pattern: string, baseUrl: string): boolean {
  const { protocol, hostname, port, path } = read(pattern)!;
  const url = new URL(baseUrl);
  const isSame = (wanted: string | null, own: string) => wanted === null || wanted === own;
  return (
    isSame(protocol, url.protocol) &&
    isHost(hostname, plainHost(url.hostname)) &&
    (port === '*' || isSame(port, url.port || defaultPorts[url.protocol]!)) &&
    `${plainPath(url)}/`.startsWith(`${path}/`)
  );
}

const defaultPorts: Record<string, string> = { 'http:': '80', 'https:': '443' };

/** Each `*` stands for the shortest text that fits, so that no pattern takes long. */
function isHost(pattern: string, hostname: string): boolean {
  const [first = '', ...others] = pattern.split('*');
  const last = others.pop();
  if (last === undefined) return hostname === pattern;
  let end = hostname.startsWith(first) ? first.length : -1;
  for (const part of others) {
    const start = end < 0 ? -1 : hostname.indexOf(part, end);
    end = start < 0 ? -1 : start + part.length;
  }
  return end >= 0 && hostname.length - last.length >= end && hostname.endsWith(last);
}

/** `api.example.com.` names the same host as `api.example.com`. */
function plainHost(hostname: string): string {
  return hostname.replace(/\.+$/, '');
}

const form = /^(?:(https?:)\/\/)?(\[[\da-f:.]+\]|[^/?#@:[\]\s\\]+)(?::(\*|\d{1,5}))?(\/[^?#\s]*)?$/i;

function read(text: string): Pattern | null {
  const [, protocol = null, host = '', givenPort = null, path = ''] = form.exec(text) ?? [];
  const hostname = normalHost(host);
  const port = givenPort === null || givenPort === '*' ? givenPort : String(Number(givenPort));
  if (hostname === '' || Number(port) > 65_535) return null;
  return { protocol: protocol?.toLowerCase() ?? null, hostname, port, path: plainPath(new URL(`http://x${path}`)) };
}

/** The host name as a URL writes it; '' if there can be no such host. */
function normalHost(host: string): string {
  if (!host.includes('*')) return URL.canParse(`http://${host}`) ? plainHost(new URL(`http://${host}`).hostname) : '';
  const hostname = plainHost(host).split('.').map(normalLabel).join('.');
  return /^[\w*-]+(\.[\w*-]+)*$/.test(hostname) ? hostname : '';
}

function normalLabel(label: string): string {
  if (label.includes('*')) return label.toLowerCase();
  return URL.canParse(`http://${label}.x`) ? new URL(`http://${label}.x`).hostname.slice(0, -'.x'.length) : '';
}
