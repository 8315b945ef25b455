import { isDigit } from '../model/check-id.ts';
import { quoteForShell } from '../model/shell-word.ts';
import { adviceToSplit } from './convert-advice.ts';
import { inputError, shown } from './input-error.ts';
import { isNamedLike } from './rivals.ts';

/** The facts of a list that concern its headers. `firstRow`: whether its first row may be an unexpected header. */
export type HeaderRules = { name: string; column: string; allowColumnNames: boolean; firstRow: boolean };

/**
 * Decides for every row of a file whether it is a header instead of ids. After a header in the middle, which concatenated exports have, the rows can
 * be of another kind, so the list is refused.
 */
export class HeaderCheck {
  readonly #rules: HeaderRules;
  readonly #header: readonly string[];
  readonly #sorted: string;
  readonly #lengths: Uint8Array; // 1 for each length that a cell of the header has
  #isFirst: boolean;

  /** `header`: the cells of the first row, if it is a header; otherwise []. */
  constructor(rules: HeaderRules, header: readonly string[] = []) {
    this.#rules = rules;
    this.#header = header;
    this.#sorted = normalized(header);
    this.#lengths = new Uint8Array(1 + Math.max(0, ...header.map((cell) => cell.length)));
    for (const cell of header) this.#lengths[cell.length] = 1;
    this.#isFirst = rules.firstRow;
  }

  /**
   * Whether the row repeats the name of the column as its id. Throws USAGE for a row that is another header, or JSON in place of ids. `id`: the cell
   * with the id; `cells`: all cells of the row, or the text of a line. Most rows cost one look at their id.
   */
  isRepeated(line: number, id: string, cells: readonly string[] | string): boolean {
    if (this.#isFirst) this.#refuseFirst(line, id, cells);
    const isOtherLength = id.length >= this.#lengths.length || this.#lengths[id.length] === 0;
    if (isOtherLength && (isDigit(id, 0) || digit.test(id))) return false;
    if (conflict.test(id)) throw inputError(this.#rules.name, line, conflictFound, conflictNext);
    if (this.#rules.allowColumnNames) return false;
    const row = cellsOf(cells);
    const isReordered = this.#sorted !== '' && normalized(row) === this.#sorted && !this.#isHeader(row);
    if (!isReordered && !this.#rules.firstRow && id === this.#rules.column) return true;
    const name = isReordered ? row[0] : this.#nameIn(row);
    if (name === undefined) return false;
    if (isTable(cells))
      throw inputError(this.#rules.name, line, `${isColumn(name)} of a printed table; nothing was sent`, tableNext);
    const message = `the row holds ${shown(name)}, the name of a column, like the header of another list that was joined to this one`;
    throw inputError(this.#rules.name, line, `${message}; nothing was sent`, joinedNext);
  }

  #isHeader(row: readonly string[]): boolean {
    return row.length === this.#header.length && row.every((cell, index) => cell === this.#header[index]);
  }

  #nameIn(row: readonly string[]): string | undefined {
    if (this.#isHeader(row)) return undefined;
    return columnNameIn(row, (cell) => isSame(cell, this.#rules.column) || isUsualName(cell));
  }

  #refuseFirst(line: number, id: string, cells: readonly string[] | string): void {
    this.#isFirst = false;
    const { name, column, allowColumnNames } = this.#rules;
    const first = typeof cells === 'string' ? cells : (cells[0] ?? id);
    if (looksLikeJson.test(first)) {
      throw inputError(
        name,
        line,
        'the first row looks like JSON, not like an id',
        jsonAdvice(name, typeof cells === 'string' ? cells : cells.join()),
      );
    }
    if (allowColumnNames) return;
    const found = columnNameIn(cellsOf(cells), (cell) => isSame(cell, column) || isColumnName(cell));
    if (found === undefined) return;
    if (isTable(cells)) throw inputError(name, line, `${isColumn(found)} of a printed table`, tableNext);
    throw inputError(name, line, `the first row holds ${shown(found)}, the name of a column`, headerNext(found, cells));
  }
}

const looksLikeJson = /^\s*(?:\{\s*(?:"|$)|\[\s*(?:["{[]|$))/;

function jsonAdvice(name: string, text: string): string {
  if (text.trimStart().startsWith('[')) return 'for a JSON array use --format json';
  return text.trimEnd().endsWith('}') ? 'for one object per line use --format ndjson' : adviceToSplit(name, '.');
}

const joinedNext =
  'keep each export in a file of its own and run them one by one; if it is an id of this API: --allow-column-names';

/** The advice about a header. `cells`: the cells of the header, or its line. */
function headerNext(column: string, cells: readonly string[] | string): string {
  const separator = typeof cells === 'string' ? /[,;\t|]/.exec(cells)?.[0] : undefined;
  const delimiter = separator === undefined || separator === ',' ? '' : ` --delimiter ${typedDelimiter(separator)}`;
  return `for a list with a header use --format csv --column ${quoteForShell(column.trim())}${delimiter}, without --no-header; if it is an id of this API: --allow-column-names`;
}

/** The lines that git leaves above and below the two versions of lines that it could not merge: the file has ids of both. */
const conflict = /^(?:<{7}|>{7}|\|{7}) \S/;
const conflictFound = 'the row marks a merge conflict, so ids of two versions of the list are in it; nothing was sent';
const conflictNext = 'resolve the conflict and remove its marks';

const tableNext =
  'export ids without names, borders and counts (psql -At, mysql -BN, sqlite3 -list), or as CSV; if it is an id of this API: --allow-column-names';

function isColumn(name: string): string {
  return `the row holds ${shown(name.trim())}, the name of a column`;
}

/** Whether a line of text is laid out for people: with white space around or between its cells, or bars before them. */
function isTable(cells: readonly string[] | string): boolean {
  return typeof cells === 'string' && /^[ |\u2502]|\s\||\S {2,}\S/.test(cells);
}

/** Finds the cell that names a column, if the row is a header: the first cell is a name, or another cell is and no cell has a digit. */
function columnNameIn(cells: readonly string[], isName: (cell: string) => boolean): string | undefined {
  const found = cells.find(isName);
  return found === cells[0] || !cells.some((cell) => /\d/.test(cell)) ? found : undefined;
}

/** A delimiter as it is typed in a shell. */
export function typedDelimiter(delimiter: string): string {
  return delimiter === '\t' ? 'tab' : quoteForShell(delimiter);
}

function cellsOf(cells: readonly string[] | string): readonly string[] {
  return typeof cells === 'string' ? cells.split(/[,;\t|]/).map(unquoted) : cells;
}

function normalized(cells: readonly string[]): string {
  return cells.length < 2
    ? ''
    : cells
        .map((cell) => cell.trim().toLowerCase())
        .sort()
        .join('\n');
}

function isSame(cell: string, column: string): boolean {
  return cell.trim().toLowerCase() === column.toLowerCase();
}

/** Whether a first row may be the name of an id: id, annotation_id, View ID, viewId, UUID. Ids without a digit are rare. */
function isColumnName(cell: string): boolean {
  return idWord.test(cell.trim()) || camelCase.test(cell.trim());
}

/** Whether a later row is the name of an id. Only usual ones count: among ten million random ids without a digit, some end like a name. */
function isUsualName(cell: string): boolean {
  return cell.length <= 64 && (idAlone.test(cell.trim()) || isNamedLike(cell, null));
}

const idWord = /^(?:\D*[_ .-])?(?:id|uuid|guid)s?$/i;
const camelCase = /^\D*[a-z](?:Id|ID|Uuid|UUID|Guid|GUID)s?$/;

const idAlone = /^_?(?:id|uuid|guid)s?$/i;

const digit = /\d/;

function unquoted(cell: string): string {
  return cell.replace(/^"(.*)"$/, '$1');
}
