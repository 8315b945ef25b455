import { stripVTControlCharacters, styleText } from 'node:util';
import { withoutUrlSecrets } from '../config/parse-url.ts';
import { quoteForShell } from '../model/shell-word.ts';

/** Functions that highlight text on a stream; each returns its text unchanged without colours. */
export type Style = Record<'bold' | 'dim' | 'green' | 'yellow' | 'red', (text: string) => string>;

/** The style of a stream: plain unless it is a terminal with colours. Respects NO_COLOR and FORCE_COLOR. */
export function styleOf(stream: NodeJS.WriteStream): Style {
  const as = (format: keyof Style) => (text: string) => styleText(format, text, { stream });
  return { bold: as('bold'), dim: as('dim'), green: as('green'), yellow: as('yellow'), red: as('red') };
}

const same = (text: string) => text;
export const plainStyle: Style = { bold: same, dim: same, green: same, yellow: same, red: same };

/** Whether a panel or a question can be drawn on a stream. `TERM=dumb` means it cannot move its cursor. */
export function isTerminal(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && env.TERM !== 'dumb';
}

/** Untrusted text (reasons, file names, answers) in one line, without control sequences. */
export function plainLine(text: string): string {
  return stripVTControlCharacters(text).replace(
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g,
    ' ',
  );
}

/** A line of at most this width; a wider one is cut and loses its style. Counts a character as one column. */
export function clip(line: string, width: number): string {
  const plain = stripVTControlCharacters(line);
  return plain.length <= width ? line : `${plain.slice(0, Math.max(0, width - 1))}…`;
}

/** Plain text in at most this many lines of this width, broken between words; the last one is clipped. */
export function wrap(text: string, width: number, lines: number): string[] {
  if (lines <= 1 || text.length <= width) return [clip(text, width)];
  const end = text.lastIndexOf(' ', width);
  if (end <= 0) return [clip(text, width)];
  return [text.slice(0, end), ...wrap(text.slice(end + 1), width, lines - 1)];
}

/** A command line to be typed again; `***` replaces what may be a secret: it is printed, and stored with the run. */
export function commandLine(program: string, args: readonly string[]): string {
  return [program, ...shownWords(args)].join(' ');
}

/** The words of a command line, quoted for a shell, without secrets. */
export function shownWords(args: readonly string[]): string[] {
  const shown = args.map((word, n) => {
    if (args[n - 1] === '--token-command') return '***';
    if (word.startsWith('--token-command=')) return '--token-command=***';
    return word.includes('://') ? withoutUrlSecrets(word) : word;
  });
  return shown.map(quoteForShell);
}

/** Rows of cells as lines; each column is as wide as its widest cell. */
export function columns(rows: string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((cells) => cells[column]!.length)));
  return rows
    .map((cells) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
