import { stripVTControlCharacters, styleText } from 'node:util';
import fastStringWidth from 'fast-string-width';
import { withoutUrlSecrets } from '../config/parse-url.ts';
import { quoteForShell } from '../model/shell-word.ts';
import { ownMark } from './safe-output.ts';

/** Functions that highlight text on a stream; each returns its text unchanged without colours. */
export type Style = Record<'bold' | 'dim' | 'green' | 'yellow' | 'red', (text: string) => string>;

/** The style of a stream: plain unless it is a terminal with colours. Respects NO_COLOR and FORCE_COLOR. */
export function styleOf(stream: NodeJS.WriteStream): Style {
  const as = (format: keyof Style) => {
    const [open = '', close = ''] = styleText(format, ' ', { stream }).split(' ').map(asOwn);
    return (text: string) => `${open}${text}${close}`;
  };
  return { bold: as('bold'), dim: as('dim'), green: as('green'), yellow: as('yellow'), red: as('red') };
}

function asOwn(sequence: string): string {
  return sequence.replace(/\u001b\[(\d+)m/g, (_, code) => ownMark(Number(code)));
}

const same = (text: string) => text;
export const plainStyle: Style = { bold: same, dim: same, green: same, yellow: same, red: same };

/** Whether a panel or a question can be drawn on a stream. `TERM=dumb` means that its cursor cannot move. */
export function isTerminal(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && env.TERM !== 'dumb';
}

/** Number of columns of a text on a terminal: a wide character or an emoji takes two, a combining mark none. */
export function textWidth(text: string): number {
  return fastStringWidth(text);
}

/** The text, filled with spaces to this many columns. */
export function padded(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)));
}

const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** A line of at most this many columns; a wider one is cut between two visible characters, and loses its style. */
export function clip(line: string, width: number): string {
  if (textWidth(line) <= width) return line;
  let [kept, used] = ['', 0];
  for (const { segment } of graphemes.segment(stripVTControlCharacters(line))) {
    used += textWidth(segment);
    if (used > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** Plain text in at most this many lines of this width, broken between words; the last line is clipped. */
export function wrap(text: string, width: number, lines: number): string[] {
  if (lines <= 1 || textWidth(text) <= width) return [clip(text, width)];
  const fits = clip(text, width + 1); // its last character is the ellipsis, or a space that can be dropped
  const end = text.lastIndexOf(' ', fits.length - 1);
  if (end <= 0) return [clip(text, width)];
  return [text.slice(0, end), ...wrap(text.slice(end + 1), width, lines - 1)];
}

/**
 * Text in lines of this width, broken between words. Nothing is cut off: a wider word has its own line. `fast-wrap-ansi` does not fit: it composes
 * characters (NFC), so an id or a file name to copy would become another one.
 */
export function wrapWhole(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && textWidth(longer) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** A command line to type again. `***` replaces what may be a secret, because the line is printed, and stored with the run. */
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

/** Maximum width of a table, and the columns to leave out if it is wider, in this order. */
export type TableFit = { width: number; dropped: readonly string[] };

/** The fit for a terminal, with its width; undefined elsewhere, where nothing is left out. */
export function tableFit(
  stream: { isTTY?: boolean; columns?: number },
  env: NodeJS.ProcessEnv,
  dropped: readonly string[],
): TableFit | undefined {
  return isTerminal(stream, env) && stream.columns ? { width: stream.columns - 1, dropped } : undefined;
}

const minCell = 8;

/**
 * Rows of cells as lines, starting with the names of the columns; each column is as wide as its widest cell. `fit` makes the lines fit a terminal:
 * first the last column is shortened, then columns are left out, then cells are shortened.
 */
export function columns(rows: readonly (readonly string[])[], fit?: TableFit): string {
  if (fit === undefined) return lay(rows);
  const kept = fit.dropped.reduce<readonly (readonly string[])[]>(
    (left, name) => (minWidth(left) <= fit.width ? left : without(left, left[0]!.indexOf(name))),
    rows,
  );
  return lay(shortened(kept, fit.width).map((cells) => cells.map(isolated)));
}

function lay(rows: readonly (readonly string[])[]): string {
  const widths = widthsOf(rows);
  const cellOf = (cell: string, column: number) => padded(cell, widths[column]!);
  return rows.map((cells) => cells.map(cellOf).join('  ').trimEnd()).join('\n');
}

function widthsOf(rows: readonly (readonly string[])[]): number[] {
  return rows[0]!.map((_, column) => Math.max(...rows.map((cells) => textWidth(cells[column]!))));
}

/** The width with the last column as short as it may be. */
function minWidth(rows: readonly (readonly string[])[]): number {
  const widths = widthsOf(rows);
  const last = Math.min(minCell, widths.at(-1)!);
  return widths.slice(0, -1).reduce((sum, width) => sum + width + 2, last);
}

function without(rows: readonly (readonly string[])[], column: number): readonly (readonly string[])[] {
  return column === -1 ? rows : rows.map((cells) => cells.filter((_, n) => n !== column));
}

/** Gives the last column the remaining width, and if that is too little, shortens all columns but the first, in order. */
function shortened(rows: readonly (readonly string[])[], width: number): readonly (readonly string[])[] {
  const widths = widthsOf(rows);
  for (let column = widths.length - 1; column > 0; column--) {
    const excess = widths.reduce((sum, each) => sum + each + 2, -2) - width;
    if (excess > 0) widths[column] = Math.max(Math.min(minCell, widths[column]!), widths[column]! - excess);
  }
  return rows.map((cells) => cells.map((cell, column) => clip(cell, widths[column]!)));
}

const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** Isolates a cell: text that is written from right to left must not affect the cells next to it. */
function isolated(cell: string): string {
  return rightToLeft.test(cell) ? `${ownMark(0x2068)}${cell}${ownMark(0x2069)}` : cell;
}
