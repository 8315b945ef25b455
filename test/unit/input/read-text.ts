import type { InputOptions } from '../../../src/input/input-options.ts';
import { type InputFile, openInputs } from '../../../src/input/open-inputs.ts';
import { readRows } from '../../../src/input/read-rows.ts';
import type { Row } from '../../../src/model/row.ts';

export const options: InputOptions = {
  resource: 'annotations',
  resourceColumn: null,
  format: null,
  column: null,
  reads: 'list',
  noHeader: false,
  delimiter: ',',
  comments: null,
  allowIdChars: '',
  allowPlaceholders: false,
  allowInvisible: false,
  allowColumnNames: false,
  allowOpenEnd: false,
  allowDamagedNumbers: false,
  idPattern: null,
};

/** Text or bytes as an input file of that name, handed over in pieces of this size. */
export function inputOf(name: string, content: string | Buffer, piece = 65_536): InputFile {
  const bytes = Buffer.from(content);
  const isStdin = name === '(stdin)';
  async function* open() {
    for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece);
  }
  return { name, isStdin, isPipe: isStdin, open };
}

export async function collect(files: InputFile[], changes: Partial<InputOptions> = {}): Promise<Row[]> {
  const rows: Row[] = [];
  for await (const batch of readRows(files, { ...options, ...changes })) rows.push(...batch);
  return rows;
}

/** The rows of a fixture. Its path in messages is cut to the name. */
export async function fixture(name: string, changes: Partial<InputOptions> = {}): Promise<Row[]> {
  const [file] = await openInputs([new URL(`../../fixtures/${name}`, import.meta.url).pathname], noStdin());
  return collect([{ ...file!, name }], changes);
}

/** Rows in short: the id, or the id and why it is rejected. */
export function brief(rows: Row[]): string[] {
  return rows.map(({ id, reject }) => [id, reject].filter((part) => part !== null && part !== '').join(' '));
}

export async function* noStdin(): AsyncGenerator<Buffer> {}
