import { writeFile } from 'node:fs/promises';
import { readSpool } from './read-spool.ts';
import type { Spool } from './spool.ts';
import { csvCell, neutralised } from './spreadsheet-cell.ts';

/**
 * Writes all rejected rows to a CSV for people: its ids are made safe for spreadsheets, hence the name of their column, which
 * no `--column id` accepts. Replaces the file.
 */
export async function writeRejects(spool: Spool, path: string): Promise<void> {
  await writeFile(path, rejectLines(spool), { mode: 0o600 });
}

function* rejectLines(spool: Spool): Generator<string> {
  let text = 'file,line,id_safe,code\n';
  for (const { file, line, id, reject } of readSpool(spool)) {
    if (reject === null) continue;
    text += `${csvCell(neutralised(spool.files[file]!))},${line},${csvCell(neutralised(id))},${reject}\n`;
    if (text.length < 64 * 1024) continue;
    yield text;
    text = '';
  }
  yield text;
}
