import { ExpungeError, readNamedFile } from '../errors.ts';
import { quotePath } from '../model/shell-word.ts';

/** The header for the token in a file that a flag names. Throws CREDENTIALS for a file that cannot be read or holds no token. */
export function readTokenFile(flag: string, path: string): string {
  const trim = `perl -pi -e 's/^\\s+|\\s+$//g' ${quotePath(path)}`;
  return bearerHeader(readNamedFile(flag, path, 'CREDENTIALS'), `${flag} ${path}`, trim);
}

/** The header for the token in a variable. Throws CREDENTIALS for text that is not a token. */
export function readTokenVariable(name: string, text: string): string {
  return bearerHeader(text, name, `export ${name}="$(printf %s "$${name}" | tr -d '\\t\\r\\n ')"`);
}

/**
 * Throws if the text is not a b64token (RFC 6750 §2.1): it may be a whole file, or split the header. The message says what is wrong, and shows
 * nothing of the text. `trim`: a command that removes the text around the token.
 */
function bearerHeader(text: string, source: string, trim: string): string {
  const token = bareToken(text);
  if (isBearerToken(token)) return `Bearer ${token}`;
  throw new ExpungeError('CREDENTIALS', `${source}: expected one bearer token, got ${describeTokenFault(text)}`, {
    next: isTrimmable(text) ? `remove it: ${trim}` : tokenFormat,
  });
}

/** A token without a leading `Bearer `, which people copy with it; no token can hold a space. */
export function bareToken(text: string): string {
  return text.replace(/^Bearer +/i, '');
}

/** Whether this text can follow `Bearer `. */
export function isBearerToken(text: string): boolean {
  return /^[A-Za-z0-9._~+/-]+=*$/.test(text);
}

/** The format of a token, as advice for other text. */
export const tokenFormat =
  'a token consists of letters, digits and - . _ ~ + / with = at the end; its content is not shown here';

/** The fault of a text that is not a token, for the end of `got …`. It shows nothing of the text. */
export function describeTokenFault(text: string): string {
  const core = coreOf(text);
  const [table, faulty] = isBearerToken(core) ? [edgeFaults, text] : [faults, core];
  return table.find(([pattern]) => pattern.test(faulty))![1];
}

/** Faults around a token; the first that applies counts. */
const edgeFaults: [pattern: RegExp, got: string][] = [
  [/\r$/, 'text that ends with CR (a Windows line end)'],
  [/\n$/, 'text that ends with an empty line'],
  [/\s$/, 'text that ends with white space'],
  [/^\uFEFF/, 'text that begins with a byte order mark'],
  [/^/, 'text that begins with white space'],
];

/** Other faults in place of a token; the first that applies counts. */
const faults: [pattern: RegExp, got: string][] = [
  [/^$/, 'nothing'],
  [/[\0\uFFFD]/, 'text that is not UTF-8'],
  [/^[[{]/, 'JSON, not the token alone'],
  [/^-----BEGIN/, 'a key or a certificate'],
  [/^[\w-]+:\s/, 'a header with its name'],
  [/[\r\n]/, 'text that holds a line break'],
  [/\s/, 'text that holds white space'],
  [/^["'`]|["'`]$/, 'text in quotes'],
  [/[\p{Cc}\p{Cf}]/u, 'text that holds an invisible character'],
  [/[^ -~]/, 'text that holds a character beyond ASCII'],
  [/^/, 'text that holds a character no token has'],
];

/** Whether the only fault is white space around the token, all of which the tools of a shell know. */
function isTrimmable(text: string): boolean {
  return isBearerToken(coreOf(text)) && /^[\t\r\n -~]*$/.test(text);
}

function coreOf(text: string): string {
  return bareToken(text.trim());
}
