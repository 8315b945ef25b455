import { adviceToExtract, adviceToUnpack, type Unpacker } from './convert-advice.ts';
import { inputError } from './input-error.ts';

/** The number of bytes that are examined. */
export const headBytes = 265;

type Foreign = { head: RegExp; words: string; next: (name: string) => string };

/** Formats that are not a list, by their first bytes; no text begins with them. */
const foreignFormats: Foreign[] = [
  { head: /^PK[\x03\x05][\x04\x06]/, words: 'a ZIP archive or a spreadsheet', next: adviceForZip },
  { head: /^BZh\d(?:1AY&SY|\x17rE8P\x90)/, words: 'packed with bzip2', next: (name) => unpackAll(name, 'bzip2') },
  { head: /^\xfd7zXZ\0/, words: 'packed with xz', next: (name) => unpackAll(name, 'xz') },
  { head: /^PAR1[^\n\r -~]/, words: 'a Parquet file', next: () => 'export its ids as CSV first' },
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

function adviceForZip(name: string): string {
  return name.endsWith('.zip') ? adviceToExtract(name, 'unzip -n') : 'save it as CSV, or unpack it first';
}
