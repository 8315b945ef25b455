/** Quotes text so that a shell takes it as one word. */
export function quoteForShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The same for the name of a file, which no command takes for an option. */
export function quotePath(path: string): string {
  return quoteForShell(path.startsWith('-') ? `./${path}` : path);
}
