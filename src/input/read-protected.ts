import { inputError } from './input-error.ts';
import type { InputOptions } from './input-options.ts';
import { openInputs } from './open-inputs.ts';
import { readRows } from './read-rows.ts';

/**
 * The ids of a `--protect` file, of either resource: one a line, or CSV or NDJSON by its name. Stricter than the input:
 * throws USAGE for any id that could not be sent, since a protected id that is misread protects nothing.
 */
export async function* readProtected(path: string, options: InputOptions): AsyncGenerator<string[]> {
  if (path === '-') throw inputError(path, null, 'protected ids come from a file, stdin is for the list');
  const files = await openInputs([path], noStdin());
  const isNamed = /\.(csv|tsv|ndjson|jsonl)(\.gz|\.zst)?$/i.test(path);
  const format = isNamed ? null : 'lines';
  for await (const rows of readRows(files, { ...options, format, resource: 'annotations', resourceColumn: null })) {
    const wrong = rows.find((row) => row.reject !== null && row.reject !== 'repeated_header');
    if (wrong) throw inputError(path, wrong.line, `this protected id cannot match any id (${wrong.reject})`);
    yield rows.map((row) => row.id);
  }
}

async function* noStdin(): AsyncGenerator<Buffer> {}
