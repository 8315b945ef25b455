import { toTypeAnywhere } from '../model/to-type.ts';
import { padded, type Style, textWidth, wrapWhole } from './style.ts';

const usualWidth = 80;
const minWidth = 60;
const maxWidth = 100;
const gap = 2;
const minCell = 28; // columns; a table whose longest column would be narrower is printed as a list

/** The width for text on a terminal, or in a pipe: a line of more than 100 columns is hard to read. */
export function readingWidth({ columns }: { columns?: number }, { COLUMNS }: NodeJS.ProcessEnv): number {
  return Math.min(maxWidth, Math.max(minWidth, columns ?? (Number(COLUMNS) || usualWidth)));
}

/**
 * Markdown as text for a terminal. Supports what the topics use: headings, paragraphs, lists of one level, tables, code and comments. Lines of code
 * stay as they are, except long commands, which are folded so that they can be copied.
 */
export function renderMarkdown(markdown: string, width: number, style: Style): string {
  const lines = markdown.replace(/<!--.*?-->\n?/gs, '').split('\n');
  const blocks: string[] = [];
  while (lines.length > 0) {
    if (lines[0]!.trim() === '') lines.shift();
    else blocks.push(renderBlock(lines, width, style));
  }
  return `${blocks.join('\n\n')}\n`;
}

/** Takes the first block off the lines. */
function renderBlock(lines: string[], width: number, style: Style): string {
  const first = lines[0]!;
  if (first.startsWith('```')) return code(lines, width);
  if (first.startsWith('#')) return heading(lines.shift()!, width, style);
  if (first.startsWith('|')) return table(takeWhile(lines, isCells), width, style);
  const text = takeWhile(lines, (line, at) => line.trim() !== '' && (at === 0 || !beginsBlock(line)));
  return isItem(first) ? list(text, width, style) : wrapWhole(inline(text.join(' '), style), width).join('\n');
}

const isCells = (line: string) => line.startsWith('|');
const isItem = (line: string) => /^(-|\d+\.) /.test(line);
const beginsBlock = (line: string) => /^(```|\||#)/.test(line);

function takeWhile(lines: string[], holds: (line: string, at: number) => boolean): string[] {
  const end = lines.findIndex((line, at) => !holds(line, at));
  return lines.splice(0, end === -1 ? lines.length : end);
}

function code(lines: string[], width: number): string {
  const isCommand = lines.shift() === '```sh' ? /^[^#]+$/ : /^\$ [^#]*$/;
  const inside = takeWhile(lines, (line) => !line.startsWith('```'));
  lines.shift();
  const indent = (line: string) => (line === '' ? '' : `    ${line}`);
  return inside.map((line) => indent(isCommand.test(line) ? foldCommand(line, width, 8) : line)).join('\n');
}

/** A command in lines of this width if its options allow it, in a form that a shell takes; lines after the first are indented. */
export function foldCommand(line: string, width: number, indent: number): string {
  const space = width - indent - ' \\'.length;
  const lines: string[] = [];
  for (const part of line.split(/ (?=--\w|\| )/)) {
    const last = lines.at(-1);
    if (last !== undefined && textWidth(last) + 1 + textWidth(part) <= space)
      lines[lines.length - 1] = `${last} ${part}`;
    else lines.push(part);
  }
  return textWidth(line) <= width - indent ? line : lines.join(` \\\n${' '.repeat(indent)}`);
}

function heading(line: string, width: number, { bold }: Style): string {
  const text = line.replace(/^#+ /, '').replaceAll('`', '');
  return wrapWhole(styled(line.startsWith('## ') ? text.toUpperCase() : text, bold), width).join('\n');
}

/** Each item on its own lines, indented after its dash or number. */
function list(lines: string[], width: number, style: Style): string {
  const items = lines.join('\n').split(/\n(?=(?:-|\d+\.) )/);
  const rendered = items.map((item) => {
    const [, sign = '', text = ''] = /^(-|\d+\.) (.*)$/s.exec(item) ?? [];
    return hanging(inline(text.replace(/\s*\n\s*/g, ' '), style), `  ${sign} `, width);
  });
  return rendered.join('\n');
}

/** Text after the first columns of a line, broken between words; further lines are indented to the same column. */
export function hanging(text: string, before: string, width: number): string {
  const indent = textWidth(before);
  const lines = wrapWhole(text, width - indent);
  return lines.map((line, at) => (at === 0 ? before : ' '.repeat(indent)) + line).join('\n');
}

/** The table in columns, of which the longest is wrapped; as a list if that column would be too narrow. */
function table(lines: string[], width: number, style: Style): string {
  const [header = [], , ...rows] = lines.map((line) => cellsOf(line).map((cell) => inline(cell, style)));
  const titles = header.map((title) => styled(title, style.bold));
  const widths = titles.map((_, column) => Math.max(...[titles, ...rows].map((row) => textWidth(row[column] ?? ''))));
  const longest = widths.indexOf(Math.max(...widths));
  const left = width - widths.reduce((sum, one, column) => sum + (column === longest ? 0 : one + gap), 0);
  const words = rows.flatMap((row) => (row[longest] ?? '').split(' ').map(textWidth));
  const least = Math.max(Math.min(widths[longest]!, minCell), ...words);
  if (left < least) return tableAsList(header, rows, width, style);
  widths[longest] = Math.min(left, widths[longest]!);
  const rule = widths.map((one) => style.dim('-'.repeat(one)));
  return [titles, rule, ...rows].map((row) => rowLines(row, widths)).join('\n');
}

/** The cells between the bars; a bar after a backslash belongs to its cell. */
function cellsOf(line: string): string[] {
  const cells = line.trim().replace(/^\||\|$/g, '');
  return cells.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
}

function rowLines(row: string[], widths: number[]): string {
  const cells = widths.map((width, column) => wrapWhole(row[column] ?? '', width));
  const height = Math.max(...cells.map((cell) => cell.length));
  const lines = Array.from({ length: height }, (_, at) =>
    widths.map((width, column) => padded(cells[column]![at] ?? '', width)).join(' '.repeat(gap)),
  );
  return lines.map((line) => line.trimEnd()).join('\n');
}

/** Each row as a list: the first cell alone, the others below it; if there are several, each with the name of its column. */
function tableAsList(header: string[], rows: string[][], width: number, { bold }: Style): string {
  const [, ...others] = header;
  const names = others.length > 1 ? others.map((name) => `${name}: `) : [''];
  const items = rows.map(([first = '', ...cells]) => {
    const below = cells.flatMap((cell, at) => (cell === '' ? [] : hanging(names[at] + cell, '    ', width)));
    return [...wrapWhole(styled(first, bold), width), ...below].join('\n');
  });
  return items.join('\n\n');
}

/** Code, strong text, emphasis and links as words; a link to a topic becomes the command to type. */
function inline(text: string, { bold }: Style): string {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/);
  return parts
    .map((part, at) => {
      if (at % 2 === 0) return part.replace(/(^|[\s(])\*([^*\s][^*]*)\*/g, '$1$2');
      if (part.startsWith('[')) return linkText(part, bold);
      if (part.startsWith('**')) return styled(part.slice(2, -2).replaceAll('`', ''), bold);
      return codeSpan(part, bold);
    })
    .join('');
}

/** Code without its marks; in quotes if nothing else would distinguish it from prose: a word without a style, or signs. */
function codeSpan(part: string, bold: (text: string) => string): string {
  const text = part.slice(1, -1);
  const isLoneWord = /^[a-z][a-z\d]*([-_][a-z\d]+)*$/.test(text) && bold(text) === text;
  return styled(isLoneWord || !/\w/.test(text) ? `"${text}"` : text, bold);
}

function linkText(link: string, bold: (text: string) => string): string {
  const [, linked = '', to = ''] = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(link) ?? [];
  const text = linked.replace(/`[^`]+`/g, (span) => codeSpan(span, bold));
  const [, topic] = /^([\w-]+)\.md(?:#[\w-]+)?$/.exec(to) ?? [];
  if (topic === undefined) return text;
  const command = styled(toTypeAnywhere('help', topic), bold);
  return text.toLowerCase() === topic ? command : `${text} (${command})`;
}

/** Styles each word, so that lines can be broken between words. */
function styled(text: string, style: (text: string) => string): string {
  return text
    .split(' ')
    .map((word) => (word === '' ? '' : style(word)))
    .join(' ');
}
