import { adviceToExport, adviceToExtract, adviceToUnpack, type Unpacker } from './convert-advice.ts';
import { inputError } from './input-error.ts';

/** The number of bytes that are examined. */
export const headBytes = 265;

type Foreign = { head: RegExp; words: string; next: (name: string) => string };

/** Formats that are not a list, by their first bytes; no list begins with them. */
const foreignFormats: Foreign[] = [
  { head: /^PK[\x03\x05][\x04\x06]/, words: 'a ZIP archive or a spreadsheet', next: adviceForZip },
  { head: /^BZh\d(?:1AY&SY|\x17rE8P\x90)/, words: 'packed with bzip2', next: (name) => unpackAll(name, 'bzip2') },
  { head: /^\xfd7zXZ\0/, words: 'packed with xz', next: (name) => unpackAll(name, 'xz') },
  { head: /^7z\xbc\xaf\x27\x1c/, words: 'a 7z archive', next: (name) => adviceToExtract(name, '7z x -aos') },
  { head: /^\xd0\xcf\x11\xe0/, words: 'a spreadsheet or another document of Office', next: () => 'save it as CSV' },
  { head: /^PAR1[^\n\r -~]/, words: 'a Parquet file', next: (name) => adviceToExport(name, sqlText(name)) },
  {
    head: /^SQLite format 3\0/,
    words: 'an SQLite database',
    next: (name) => adviceToExport(name, `sqlite_scan(${sqlText(name)}, 'TABLE')`),
  },
  {
    head: /^Obj\x01/,
    words: 'an Avro file',
    next: (name) => adviceToExport(name, `read_avro(${sqlText(name)})`),
  },
  { head: /^ORC[^\n\r -~]|^ARROW1\0/, words: 'an ORC or Arrow file', next: () => 'export its ids as CSV first' },
  { head: /^%PDF-\d/, words: 'a PDF', next: () => 'export the ids as CSV first' },
  {
    head: /^(?:\xef\xbb\xbf)?\s*<(?:!doctype|html|head|body|title)\b/i,
    words: 'a web page',
    next: () => adviceForPage,
  },
  { head: /^(?:\xef\xbb\xbf)?\s*<\?xml\b/i, words: 'XML', next: () => 'export the ids as CSV first' },
  {
    head: /^version https:\/\/git-lfs\./,
    words: 'a pointer to a file in Git LFS',
    next: () => 'fetch it: git lfs pull',
  },
  { head: /^.{257}ustar(?:\0| {2}\0)/s, words: 'a tar archive', next: adviceForTar },
];

/** Throws USAGE for data of another format, by its first bytes. `packing`: the program that packed the data, if any. */
export function refuseForeignFormat(name: string, head: Buffer, packing: Unpacker | null): void {
  const text = head.toString('latin1', 0, headBytes);
  const found = foreignFormats.find((format) => format.head.test(text));
  if (found === undefined) return;
  const next = packing === null || found.next === adviceForTar ? found.next(name) : adviceToUnpack(name, packing);
  throw inputError(name, null, `this is ${found.words}${packing === null ? '' : `, packed with ${packing}`}`, next);
}

/** Advice to unpack an archive. tar unpacks the archives that it has packed itself. */
function unpackAll(name: string, tool: Unpacker): string {
  return /\.(?:tar\.\w+|t[bx]z2?)$/.test(name) ? adviceForTar(name) : adviceToUnpack(name, tool);
}

function adviceForTar(name: string): string {
  return adviceToExtract(name, 'tar -xkf');
}

const adviceForPage = 'look at it: the export may need a login, or another address';

/** The name of a file as SQL takes it. */
function sqlText(name: string): string {
  return `'${name.replaceAll("'", "''")}'`;
}

function adviceForZip(name: string): string {
  return name.endsWith('.zip') ? adviceToExtract(name, 'unzip -n') : 'save it as CSV, or unpack it first';
}
