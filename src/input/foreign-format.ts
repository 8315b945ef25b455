import { adviceToExtract, adviceToUnpack, type Unpacker } from './convert-advice.ts';
import { inputError } from './input-error.ts';

/** As many bytes as are looked at. */
export const headBytes = 265;

type Foreign = { head: RegExp; words: string; next: (name: string) => string };

/** Formats that are no list, by what they begin with, byte for byte; no text begins so. */
const foreignFormats: Foreign[] = [
  { head: /^PK[\x03\x05][\x04\x06]/, words: 'a ZIP archive or a spreadsheet', next: adviceForZip },
  { head: /^BZh\d(?:1AY&SY|\x17rE8P\x90)/, words: 'packed with bzip2', next: (name) => unpackAll(name, 'bzip2') },
  { head: /^\xfd7zXZ\0/, words: 'packed with xz', next: (name) => unpackAll(name, 'xz') },
  { head: /^PAR1[^\n\r -~]/, words: 'a Parquet file', next: () => 'export its ids as CSV first' },
  { head: /^.{257}ustar(?:\0| {2}\0)/s, words: 'a tar archive', next: adviceForTar },
];

/** Throws USAGE for data of another format, by its first bytes. `packing`: what the data were packed with, if they were. */
export function refuseForeign(name: string, head: Buffer, packing: Unpacker | null): void {
  const text = head.toString('latin1', 0, headBytes);
  const found = foreignFormats.find((format) => format.head.test(text));
  if (found === undefined) return;
  const next = packing === null || found.next === adviceForTar ? found.next(name) : adviceToUnpack(name, packing);
  throw inputError(name, null, `this is ${found.words}${packing === null ? '' : `, packed with ${packing}`}`, next);
}

/** tar unpacks what it has packed itself. */
function unpackAll(name: string, tool: Unpacker): string {
  return /\.(?:tar\.\w+|t[bx]z2?)$/.test(name) ? adviceForTar(name) : adviceToUnpack(name, tool);
}

function adviceForTar(name: string): string {
  return adviceToExtract(name, 'tar -xkf');
}

function adviceForZip(name: string): string {
  return name.endsWith('.zip') ? adviceToExtract(name, 'unzip -n') : 'save it as CSV, or unpack it first';
}
