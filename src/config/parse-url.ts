import { plainPath } from '../model/url-path.ts';
import { text } from './parse-setting.ts';

// Each parser takes the text of a URL and returns it in normal form, or throws an Error that says what was expected and shows no secret.

const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Whether a host name in a URL means this machine. */
export function isLoopback(hostname: string): boolean {
  return loopback.test(hostname);
}

/**
 * The normalised base URL without a trailing slash. Only http and https. User-info, query and fragment are refused, because they would be lost or
 * leak. Whether http is allowed depends on `--allow-http`: see `check-target.ts`.
 */
export const baseUrl = (value: string): string => {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw new Error(
      `expected a URL like https://api.example.com, got "${url ? url.protocol : withoutUrlSecrets(value)}"`,
    );
  }
  if (url.username || url.password) throw new Error('a base URL cannot hold a user name or password');
  if (url.search || value.includes('?'))
    throw new Error('a base URL cannot hold a query: ids are appended to its path');
  if (url.hash || value.includes('#')) throw new Error('a base URL cannot hold a fragment');
  return url.origin + plainPath(url);
};

/** The address of an expunge server, to which paths are appended. http only on this machine, because the server gets a token. */
export const serverUrl = (value: string): string => {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new Error('expected a URL like https://ops.example.com');
  if (url.username || url.password) throw new Error('the URL cannot hold a user name or password');
  if (/[?#]/.test(value)) throw new Error('the URL cannot hold a query or a fragment');
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    throw new Error(`over http an attacker in the network could read the token for ${url.hostname}: use https`);
  return url.origin + url.pathname.replace(/\/+$/, '');
};

/** The token endpoint in normal form. It may hold a query (RFC 6749 §3.2), but no fragment and no user-info, which would leak. */
export const tokenUrl = (value: string): string => {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw new Error('expected a URL like https://auth.example.com/oauth/token');
  }
  if (url.username || url.password) throw new Error('a token URL cannot hold a user name or password');
  if (url.hash || value.includes('#')) throw new Error('a token URL cannot hold a fragment');
  return url.href;
};

/** A folder, or the URL of a server that takes files. The URL may hold a query, because some stores put their permission there. */
export const folderOrUrl = (value: string): string => {
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(value)) return text(value);
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new Error('expected a folder, or a URL like https://store.example.com/results');
  if (url.username || url.password)
    throw new Error('the URL cannot hold a user name or password: name a file with headers');
  if (url.hash || value.includes('#')) throw new Error('the URL cannot hold a fragment');
  return url.href;
};

/** A URL that receives events. Its path is often a secret, so no message shows it. */
export const webhookUrl = (value: string): string => {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new Error(
      `expected a URL like https://hooks.example.com/services/…${url ? `, got one with ${url.protocol}` : ''}`,
    );
  if (url.username || url.password) throw new Error('the URL cannot hold a user name or password');
  if (url.hash || value.includes('#')) throw new Error('the URL cannot hold a fragment');
  return url.href;
};

export const webhookUrls = Object.assign(
  (value: string): string[] => value.split(',').map((part) => webhookUrl(part.trim())),
  { isList: true } as const,
);

export const proxyUrl = (value: string): string => {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol)) {
    throw new Error('expected an HTTP proxy like http://proxy.example.com:3128');
  }
  try {
    decodeURIComponent(url.username + url.password);
  } catch {
    throw new Error('a "%" in its user or password must be written %25: they are percent-encoded');
  }
  return value;
};

/** The part of URLs that may be shown if their path is a secret. */
export function listOrigins(urls: readonly string[]): string {
  return urls.map((url) => `${new URL(url).origin}/***`).join(',');
}

/** A text that is safe to show: without user, password and query of URLs. If in doubt, it hides too much. */
export function withoutUrlSecrets(text: string): string {
  return text.replace(/^(.*?:\/\/)?[^/?#]*@/s, '$1***@').replace(/(:\/\/[^?]*)\?[^#]*/s, '$1?***');
}
