import { visible } from './visible.ts';

/** Quotes text so that a shell takes it as one word; what cannot be seen as codes, which bash, zsh and ksh read. */
export function quoteForShell(text: string): string {
  const line = text.replaceAll('\n', ''); // a terminal shows that as it is
  if (visible(line) !== line) return `$'${visible(text.replace(/['\\]/g, '\\$&'))}'`;
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The same for the name of a file, which no command takes for an option. */
export function quotePath(path: string): string {
  return quoteForShell(path.startsWith('-') ? `./${path}` : path);
}
