import { ExpungeError, readNamedFile } from '../errors.ts';

/** The source of secret headers: a file, otherwise a variable. `named`: what names the file. */
type HeaderPlace = { named: string; path: string | undefined; variable: string };

/**
 * Returns a function that reads the headers, one `Name: value` per line. A file is reread each time, so that a secret can be replaced. Without file
 * and variable there are no headers. Throws CREDENTIALS, here and later, for lines that are not headers, without showing them.
 */
export function readHeaders(
  { named, path, variable }: HeaderPlace,
  env: NodeJS.ProcessEnv,
): () => Promise<Record<string, string>> {
  const read = () =>
    path === undefined
      ? parseHeaders(variable, env[variable] ?? '')
      : parseHeaders(`${named} ${path}`, readNamedFile(named, path, 'CREDENTIALS'));
  read();
  return async () => read();
}

const reserved = ['content-length', 'transfer-encoding', 'connection', 'host', 'expect', 'upgrade'];

function parseHeaders(where: string, text: string): Record<string, string> {
  const lines = text.split('\n').map((line) => line.trim());
  const found: Record<string, string> = {};
  for (const [n, line] of lines.entries()) {
    if (line === '') continue;
    const [, name = '', value = ''] = /^([!#$%&'*+.^`|~\w-]+):\s*([\x20-\x7e]+)$/.exec(line) ?? [];
    if (name === '')
      throw new ExpungeError('CREDENTIALS', `${where}, line ${n + 1}: expected a header like Authorization: Bearer …`);
    if (reserved.includes(name.toLowerCase()))
      throw new ExpungeError('CREDENTIALS', `${where}, line ${n + 1}: the header ${name} is set by expunge itself`);
    found[name.toLowerCase()] = value;
  }
  return found;
}
