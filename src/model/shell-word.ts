import { visible } from './visible.ts';

/** Quotes text so that a shell reads it as one word. Writes invisible characters as codes, which bash, zsh and ksh read. */
export function quoteForShell(text: string): string {
  const line = text.replaceAll('\n', ''); // a terminal shows a line break as it is
  if (visible(line) !== line) return `$'${visible(text.replace(/['\\]/g, '\\$&'))}'`;
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Quotes the name of a file so that no command reads it as an option. */
export function quotePath(path: string): string {
  return quoteForShell(path.startsWith('-') ? `./${path}` : path);
}
