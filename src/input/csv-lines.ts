import type { Info } from 'csv-parse';

/**
 * Counts the lines of a CSV. The parser's own count takes a CRLF inside quotes for two lines, and tells where a record ends;
 * people look where it begins.
 */
export class CsvLines {
  #end = 0; // last line of the last record
  #blank = 0; // blank lines up to there
  #parserLines = 0; // the parser's count up to there

  /** The line where this record, which the parser has just finished, begins. */
  advance(cells: string[], info: Info): number {
    const begin = this.next(info);
    const counted = info.lines - this.#parserLines - (info.empty_lines - this.#blank);
    this.#end = begin + (counted > 1 ? newlinesIn(cells) : 0);
    this.#blank = info.empty_lines;
    this.#parserLines = info.lines;
    return begin;
  }

  /** The line where the record begins that the parser has not finished. */
  next(info: Info): number {
    return this.#end + (info.empty_lines - this.#blank) + 1;
  }
}

function newlinesIn(cells: string[]): number {
  return cells.reduce((sum, cell) => sum + (cell.match(/\r\n|\n|\r/g)?.length ?? 0), 0);
}
