import { inputError, shown } from './input-error.ts';

/**
 * Throws USAGE for a first row that is a header or JSON instead of ids: the list is then read in the wrong format. `cells` are those of
 * the row, or the whole line.
 */
export function refuseHeader(name: string, line: number, cells: string[], column: string): void {
  const [text = ''] = cells;
  if (looksLikeJson.test(text)) throw inputError(name, line, 'the first row looks like JSON, not like an id', jsonNext);
  const found = columnNameIn(cells.length > 1 ? cells : text.split(/[,;\t|]/).map(unquoted), column);
  if (found === undefined) return;
  throw inputError(name, line, `the first row holds ${shown(found)}, the name of a column`, headerNext(found));
}

const looksLikeJson = /^\s*(?:\{\s*(?:"|$)|\[\s*(?:["{[]|$))/;
const jsonNext = 'for an array use --format json, for one object a line --format ndjson';

function headerNext(column: string): string {
  const name = /^[\w.-]+$/.test(column) ? column : 'NAME';
  return `for a list with a header use --format csv --column ${name}, without --no-header; if it is an id, it must not be the first`;
}

/** The cell that names a column, if the row is a header: its first cell does, or another one and no cell has a digit. */
function columnNameIn(cells: string[], column: string): string | undefined {
  const found = cells.find((cell) => isColumnName(cell, column));
  return found === cells[0] || !cells.some((cell) => /\d/.test(cell)) ? found : undefined;
}

/** Whether this is the name of the id column, or a usual name for one: id, annotation_id, View ID, viewId, UUID. */
function isColumnName(cell: string, column: string): boolean {
  return cell.toLowerCase() === column.toLowerCase() || idWord.test(cell) || camelCase.test(cell);
}

// Ids without a digit are rare.
const idWord = /^(?:\D*[_ .-])?(?:id|uuid|guid)s?$/i;
const camelCase = /^\D*[a-z](?:Id|ID|Uuid|UUID|Guid|GUID)s?$/;

function unquoted(cell: string): string {
  return cell.replace(/^"(.*)"$/, '$1');
}
