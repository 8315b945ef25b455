import { quotePath } from '../model/shell-word.ts';

/** The ending that each program removes when it unpacks a file. */
const endings = { gzip: '.gz', zstd: '.zst', bzip2: '.bz2', xz: '.xz' } as const;

export type Unpacker = keyof typeof endings;

// Advice: a command that can be pasted and replaces no file, and on the next line what to name then.

export function adviceToUnpack(name: string, tool: Unpacker): string {
  if (!isFile(name)) return atItsSource(`${tool} -dc`);
  const unpacked = name.slice(0, -endings[tool].length);
  if (name.endsWith(endings[tool])) return thenWith(`${tool} -dk ${quotePath(name)}`, unpacked);
  const other = withWord(name, 'unpacked');
  return thenWith(`${tool} -dc < ${quotePath(name)} > ${quotePath(other)}`, other);
}

/** Advice to convert a list, which may be packed, to UTF-8. */
export function adviceToDecode(name: string, encoding: string): string {
  const filter = `iconv -f ${encoding} -t UTF-8`;
  if (!isFile(name)) return atItsSource(filter);
  const packing = (['gzip', 'zstd'] as const).find((tool) => name.endsWith(endings[tool]));
  const unpacked = packing === undefined ? name : name.slice(0, -endings[packing].length);
  const other = withWord(unpacked, 'utf-8');
  const read = packing === undefined ? `${filter} ${quotePath(name)}` : `${packing} -dc ${quotePath(name)} | ${filter}`;
  return thenWith(`${read} > ${quotePath(other)}`, other);
}

/** Advice to unpack an archive, by a command without the name of the archive. */
export function adviceToExtract(name: string, command: string): string {
  if (!isFile(name)) return 'unpack it where it comes from, and name the files that were in it';
  return `${command} ${quotePath(name)}\nthen the same command with the files that were in it`;
}

/** Whether the name is that of a file: not `(stdin)`, `inbox (command psql)` or a URL. */
export function isFile(name: string): boolean {
  return !/^https?:\/\/|\)$/.test(name);
}

function atItsSource(filter: string): string {
  return `filter it where it comes from: … | ${filter}`;
}

function thenWith(command: string, name: string): string {
  const isNamed = /\.[a-z0-9]+$/i.test(name);
  return `${command}\nthen the same command with ${quotePath(name)}${isNamed ? '' : ' and its --format'}`;
}

/** `old.csv` → `old.utf-8.csv` */
function withWord(name: string, word: string): string {
  return name.replace(/(\.[^./]+)?$/, `.${word}$1`);
}
