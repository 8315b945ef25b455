import { quoteForShell, quotePath } from '../model/shell-word.ts';

/** The file name ending that each program removes when it unpacks a file. */
const endings = { gzip: '.gz', zstd: '.zst', bzip2: '.bz2', xz: '.xz' } as const;

export type Unpacker = keyof typeof endings;

// Advice: a command that can be pasted and replaces no file, and on the next line the new file to name.

export function adviceToUnpack(name: string, tool: Unpacker): string {
  if (!isFile(name)) return atItsSource(`${tool} -dc`);
  const unpacked = name.slice(0, -endings[tool].length);
  if (name.endsWith(endings[tool])) return thenWith(`${tool} -dk ${quotePath(name)}`, unpacked);
  const other = withWord(name, 'unpacked');
  return thenWith(`${tool} -dc < ${quotePath(name)} > ${quotePath(other)}`, other);
}

/** Advice to convert a list to UTF-8. */
export function adviceToDecode(name: string, encoding: string): string {
  return adviceToFilter(name, `iconv -f ${encoding} -t UTF-8`, (unpacked) => withWord(unpacked, 'utf-8'));
}

/** Advice to write the JSON values of a list one per line, by a filter of jq. */
export function adviceToSplit(name: string, filter: string): string {
  const toNdjson = (unpacked: string) => `${unpacked.replace(/\.[^./]+$/, '')}.lines.ndjson`;
  return adviceToFilter(name, `jq -c ${quoteForShell(filter)}`, toNdjson);
}

/** Advice to remove the white space and the invisible characters around the cells and lines of a list. */
export function adviceToTrim(name: string): string {
  const filter = `perl -CSD -pe 's/${space}*(,|$)${space}*/$1/g; s/^${space}+//'`;
  return adviceToFilter(name, filter, (unpacked) => withWord(unpacked, 'trimmed'));
}

const space = '[\\h\\x{200b}-\\x{200f}\\x{2060}\\x{feff}]';

/** Advice to keep the last part of the addresses in the lines of a list. */
export function adviceToCut(name: string): string {
  return adviceToFilter(name, "sed 's#.*/##'", (unpacked) => withWord(unpacked, 'ids'));
}

/** Advice to end the lines of a list as a text does, where NUL ends them. */
export function adviceToEndLines(name: string): string {
  return adviceToFilter(name, "perl -pe 'y/\\0/\\n/'", (unpacked) => withWord(unpacked, 'lines'));
}

/** Advice to remove the comma at the end of each line. */
export function adviceToDropCommas(name: string): string {
  return adviceToFilter(name, "sed 's/, *$//'", (unpacked) => withWord(unpacked, 'lines'));
}

/** Advice to write the ids of a table, `from`, as a CSV. */
export function adviceToExport(name: string, from: string): string {
  const copy = `copy (select id from ${from}) to 'ids.csv' (header)`;
  if (!isFile(name)) return 'export its ids as CSV first';
  return thenWith(`duckdb -c ${/["$`\\!]/.test(copy) ? quoteForShell(copy) : `"${copy}"`}`, 'ids.csv');
}

/** Advice to look at the last line of a list, and to end it. */
export function adviceToEndLine(name: string): string {
  if (!isFile(name)) return 'look at it where it comes from, and end the last line if it is whole';
  const [path, { packing, unpacked }] = [quotePath(name), packingOf(name)];
  if (packing === undefined) return `look at it: tail -n 1 ${path}; if it is whole, end the line: echo >> ${path}`;
  const command = `(${packing} -dc ${path}; echo) > ${quotePath(unpacked)}`;
  return thenWith(
    `look at it: ${packing} -dc ${path} | tail -n 1; if it is whole, end the line:\n${command}`,
    unpacked,
  );
}

/** Advice to pass a list, which may be packed, through a program that also takes the name of a file. `rename`: the name of the new list. */
function adviceToFilter(name: string, filter: string, rename: (unpacked: string) => string): string {
  if (!isFile(name)) return atItsSource(filter);
  const { packing, unpacked } = packingOf(name);
  const other = rename(unpacked);
  const read = packing === undefined ? `${filter} ${quotePath(name)}` : `${packing} -dc ${quotePath(name)} | ${filter}`;
  return thenWith(`${read} > ${quotePath(other)}`, other);
}

function packingOf(name: string): { packing: Unpacker | undefined; unpacked: string } {
  const packing = (['gzip', 'zstd'] as const).find((tool) => name.endsWith(endings[tool]));
  return { packing, unpacked: packing === undefined ? name : name.slice(0, -endings[packing].length) };
}

/** Advice to unpack an archive, by a command without the name of the archive. */
export function adviceToExtract(name: string, command: string): string {
  if (!isFile(name)) return 'unpack it where it comes from, and name the files that were in it';
  return `${command} ${quotePath(name)}\nthen the same command with the files that were in it`;
}

/** Whether the name belongs to a file: not `(stdin)`, `inbox (command psql)` or a URL. */
function isFile(name: string): boolean {
  return !/^https?:\/\/|\)$/.test(name);
}

function atItsSource(filter: string): string {
  return `filter it where it comes from: … | ${filter}`;
}

function thenWith(command: string, name: string): string {
  const isNamed = /\.[a-z0-9]+$/i.test(name);
  return `${command}\nthen the same command with ${quotePath(name)}${isNamed ? '' : ' and its --format'}`;
}

/** Adds a word to a file name: `old.csv` → `old.utf-8.csv` */
function withWord(name: string, word: string): string {
  return name.replace(/(\.[^./]+)?$/, `.${word}$1`);
}
