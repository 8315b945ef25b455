import { csvCell, neutralised } from '../input/spreadsheet-cell.ts';
import type { OutcomeRow } from './outcome-row.ts';

export type ReportFormat = 'csv' | 'ndjson';

/** How a report is written. `spreadsheetSafe` changes ids that a spreadsheet would run, and says so in the header. */
export type ReportStyle = { format: ReportFormat; spreadsheetSafe: boolean };

const columns = ['file', 'line', 'resource', 'id', 'outcome', 'status', 'attempts', 'settled_at', 'code', 'excerpt'];

/** What stands before the rows. The column of changed ids has a name that `--column id` refuses. */
export function reportHeader({ format, spreadsheetSafe }: ReportStyle): string {
  if (format === 'ndjson') return '';
  return `${columns.map((column) => (column === 'id' && spreadsheetSafe ? 'id_safe' : column)).join(',')}\n`;
}

/** The rows as text. NDJSON is lossless; in a CSV `file` and `excerpt` never begin a formula. */
export function reportText(rows: OutcomeRow[], style: ReportStyle): string {
  let text = '';
  for (const row of rows) text += style.format === 'csv' ? csvLine(row, style.spreadsheetSafe) : ndjsonLine(row);
  return text;
}

function csvLine(row: OutcomeRow, spreadsheetSafe: boolean): string {
  const file = csvCell(neutralised(row.file));
  const id = csvCell(spreadsheetSafe ? neutralised(row.id) : row.id);
  const fate = `${row.outcome},${row.status ?? ''},${row.attempts},${row.settledAt},${row.code}`;
  return `${file},${row.line},${row.resource ?? ''},${id},${fate},${csvCell(neutralised(row.excerpt))}\n`;
}

function ndjsonLine(row: OutcomeRow): string {
  const { settledAt, code, excerpt, ...rest } = row;
  return `${JSON.stringify({ ...rest, settled_at: settledAt, code, excerpt })}\n`;
}
