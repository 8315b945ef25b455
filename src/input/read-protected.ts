import { inputError } from './input-error.ts';
import { formatByName, type InputOptions } from './input-options.ts';
import { openInputs } from './open-inputs.ts';
import { readRows } from './read-rows.ts';

/**
 * The ids of a `--protect` file, of either resource: one a line, or CSV or JSON by its name. Stricter than the input:
 * throws USAGE for any id that could not be sent, and where there is none: what is misread or lost protects nothing.
 */
export async function* readProtected(path: string, options: InputOptions): AsyncGenerator<string[]> {
  if (path === '-') throw inputError(path, null, 'protected ids come from a file, stdin is for the list');
  const files = await openInputs([path], noStdin());
  const format = formatByName(path) ?? 'lines';
  let read = 0;
  for await (const rows of readRows(files, { ...options, format, resource: 'annotations', resourceColumn: null })) {
    const ids = rows.filter((row) => row.reject !== 'repeated_header');
    const wrong = ids.find((row) => row.reject !== null);
    if (wrong) throw inputError(path, wrong.line, `this protected id cannot match any id (${wrong.reject})`, mend);
    read += ids.length;
    yield ids.map((row) => row.id);
  }
  if (read === 0) throw inputError(path, null, 'expected at least one id to protect, got none', wayOn);
}

const mend = 'mend or remove that line; a file of ids has one a line and no header, of a CSV the name ends with .csv';
const wayOn = 'see why the file is empty, or leave --protect away if nothing is to be protected';

async function* noStdin(): AsyncGenerator<Buffer> {}
