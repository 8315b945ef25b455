import { compileIdPattern } from '../config/id-pattern.ts';
import type { Config } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { checkId, checkLine, checkSeparators, type IdRules, isPlain } from '../model/check-id.ts';
import { type Resource, resources } from '../model/resource.ts';
import type { Position, RejectCode, Row } from '../model/row.ts';
import { quoteForShell } from '../model/shell-word.ts';
import { HeaderCheck } from './header.ts';
import { inputError } from './input-error.ts';
import { KindColumn, meantResource } from './kind-column.ts';
import type { InputFile } from './open-inputs.ts';
import { isNamedLike } from './rivals.ts';
import { RoundedNumbers } from './rounded-numbers.ts';
import { RowNumbers } from './row-numbers.ts';

export type Format = 'csv' | 'ndjson' | 'json' | 'lines';

/** The way rows are read from the files of one run. Exactly one of `resource` and `resourceColumn` is set. */
export type InputOptions = IdRules & {
  resource: Resource | null;
  resourceColumn: string | null;
  format: Format | null;
  /** The column or field of the ids; null: `id`, which is refused if another column is named like the resource. */
  column: string | null;
  /** Whether the rows are those of a list or of protected ids. */
  reads: 'list' | 'protected';
  noHeader: boolean;
  delimiter: string;
  /** What begins a comment; null: nothing does. */
  comments: string | null;
  idPattern: RegExp | null;
  allowColumnNames: boolean;
  /** Whether a last line may lack its newline where nobody sees its id. */
  allowOpenEnd: boolean;
};

/** How a person names this column. */
export function columnSetting({ reads }: Pick<InputOptions, 'reads'>, name: string): string {
  return `${reads === 'list' ? '--column ' : 'EXPUNGE_PROTECT_COLUMN='}${quoteForShell(name)}`;
}

/** The settings that decide how rows are read. */
export type InputSettings = Pick<Config, Exclude<keyof InputOptions, 'reads'>>;

/** The options of these settings; settings that are not given become null. */
export function toInputOptions(given: InputSettings): InputOptions {
  return {
    resource: given.resource ?? null,
    resourceColumn: given.resourceColumn ?? null,
    format: given.format ?? null,
    column: given.column ?? null,
    reads: 'list',
    noHeader: given.noHeader,
    delimiter: given.delimiter,
    comments: given.comments ?? null,
    allowIdChars: given.allowIdChars,
    allowPlaceholders: given.allowPlaceholders,
    allowInvisible: given.allowInvisible,
    allowDamagedNumbers: given.allowDamagedNumbers,
    allowColumnNames: given.allowColumnNames,
    allowOpenEnd: given.allowOpenEnd,
    idPattern: given.idPattern === undefined ? null : compileIdPattern(given.idPattern),
  };
}

/** The column of the ids if none is named. */
export const defaultColumn = 'id';

export function idColumn({ column }: Pick<InputOptions, 'column'>): string {
  return column ?? defaultColumn;
}

const formats: Record<string, Format> = {
  csv: 'csv',
  tsv: 'csv',
  ndjson: 'ndjson',
  jsonl: 'ndjson',
  json: 'json',
  txt: 'lines',
};

/** Chooses the format: the requested one, otherwise by the file name, otherwise lines for stdin. Throws USAGE if none of these applies. */
export function detectFormat(file: Pick<InputFile, 'name' | 'isStdin'>, asked: Format | null): Format {
  const format = asked ?? (file.isStdin ? 'lines' : formatByName(file.name));
  if (format) return format;
  const known = Object.keys(formats).map((ending) => `.${ending}`);
  throw inputError(
    file.name,
    null,
    `unknown format: the file name ends with none of ${known.join(', ')}`,
    formatAdvice,
  );
}

const formatAdvice =
  'add --format csv, --format lines (one id per line), --format ndjson (one object or string per line) or --format json (an array)';

/** The format by the extension of a file name, if it is known. */
export function formatByName(name: string): Format | undefined {
  return formats[extensionOf(name)];
}

/** The requested delimiter; the default for a .tsv file is a tab. */
export function detectDelimiter(file: InputFile, asked: string): string {
  return asked === ',' && extensionOf(file.name) === 'tsv' ? '\t' : asked;
}

function extensionOf(name: string): string {
  const unpacked = name.toLowerCase().replace(/\.(gz|zst)$/, '');
  return /\.([a-z0-9]+)$/.exec(unpacked)?.[1] ?? '';
}

/** Throws USAGE for options that contradict each other or the formats, before anything is read. */
export function checkOptions(files: InputFile[], options: InputOptions): void {
  const { resource, resourceColumn, noHeader, column } = options;
  if (!resource === !resourceColumn) {
    throw new ExpungeError('USAGE', 'expected exactly one of --resource and --resource-column', {
      next: resource
        ? 'omit one of them'
        : `add --resource ${resources.join(' or --resource ')}, or name the column that says so with --resource-column`,
    });
  }
  const other = resources.find((kind) => kind !== resource && column !== null && isNamedLike(column, kind));
  if (resource !== null && other !== undefined && !options.allowColumnNames && options.reads === 'list') {
    throw new ExpungeError(
      'USAGE',
      `--column ${column} names ids of ${other}, and --resource is ${resource}; nothing was sent`,
      {
        next: `--resource ${other}, or another --column; if that column holds ids of ${resource}: --allow-column-names`,
      },
    );
  }
  const used = files.map((file) => detectFormat(file, options.format));
  if (resourceColumn && noHeader) {
    throw new ExpungeError(
      'USAGE',
      '--resource-column needs a header to name a column of; --no-header says there is none',
      { next: `omit --no-header; or replace --resource-column with --resource ${resources.join(' or --resource ')}` },
    );
  }
  const hasCells = used.length === 0 || used.includes('csv'); // the files of a schedule are not known yet
  if (hasCells && noHeader && column !== null && column !== defaultColumn) {
    throw new ExpungeError(
      'USAGE',
      `--no-header takes the ids from the first column, and ${columnSetting(options, column)} names one of a header`,
      { next: 'give the file a header; or take its first column: --no-header --column id, or without --column' },
    );
  }
  if (options.comments !== null && options.reads === 'list' && used.includes('json')) {
    throw new ExpungeError('USAGE', 'a JSON array has no lines that --comments could skip', {
      next: 'omit --comments',
    });
  }
  if (resourceColumn && used.includes('lines')) {
    throw new ExpungeError('USAGE', 'plain lines have no columns, which --resource-column needs', {
      next: `replace it with --resource ${resources.join(' or --resource ')}; or, for a table: --format csv`,
    });
  }
}

/** Makes the rows of one file, with the resource of each and whether its id can be sent. */
export type RowMaker = {
  /**
   * Makes a row with an id. `kind`: the value of the resource column, or with --resource the value of `kindColumn`, one of the `kindColumns`.
   * `cells`: the cells of a table's row, or the text of a line.
   */
  row(line: number, id: string, kind: unknown, cells?: readonly string[] | string, kindColumn?: string): Row;
  /** Notes that an id was written as a number without quotes, of more digits than a double holds. */
  bareNumber(line: number, id: string): void;
  /** Makes a row that the format makes unusable. */
  rejected(line: number, id: string, reject: RejectCode): Row;
  /** Ends the file. Call it after the last row. Throws USAGE if the ids as a whole look damaged. */
  end(): void;
};

/** The facts of a file: its place in the list, its name, and the format that it is read in. */
export type FileFacts = { file: Position['file']; name: string; format: Format };

/** Makes the rows of a file. `header`: the cells of its header; [] if it has none. */
export function rowMaker(facts: FileFacts, options: InputOptions, header: readonly string[] = []): RowMaker {
  const { file, name, format } = facts;
  const numbers = new RoundedNumbers();
  const firstRow = format === 'lines' || (format === 'csv' && options.noHeader);
  const { allowColumnNames, resource: asked } = options;
  const said = asked === null || options.reads !== 'list' ? null : new KindColumn(name, asked);
  const rowNumbers = options.allowPlaceholders ? null : new RowNumbers(name);
  const headers = new HeaderCheck({ name, column: idColumn(options), allowColumnNames, firstRow }, header);
  return {
    row(line, id, kind, cells = id, kindColumn = undefined) {
      const resource = options.resource ?? asResource(kind);
      if (kindColumn !== undefined && typeof kind === 'string') said?.check(kindColumn, kind, line);
      if (headers.isRepeated(line, id, cells)) {
        return { file, line, resource, id, reject: 'repeated_header' };
      }
      numbers.add(line, id);
      rowNumbers?.add(line, id);
      const reject = resource === null ? rejectOfKind(kind) : rejectOf(id, format, options);
      return { file, line, resource, id, reject };
    },
    bareNumber: (line, id) => numbers.addBare(line, id),
    rejected: (line, id, reject) => ({ file, line, resource: options.resource, id, reject }),
    end: () => {
      if (!options.allowDamagedNumbers) numbers.refuse(name);
      rowNumbers?.end();
    },
  };
}

function rejectOf(id: string, format: Format, options: InputOptions): RejectCode | null {
  const plainly = isPlain(id);
  const reject = checkId(id, options, plainly);
  if (reject !== null) return reject;
  if (!plainly) {
    const foreign =
      format === 'lines' ? checkLine(id, options.allowIdChars) : checkSeparators(id, ',*', options.allowIdChars);
    if (foreign !== null) return foreign;
  }
  return options.idPattern === null || options.idPattern.test(id) ? null : 'pattern_mismatch';
}

function rejectOfKind(kind: unknown): RejectCode {
  return meantResource(kind) === null ? 'unknown_resource' : 'misspelt_resource';
}

function asResource(kind: unknown): Resource | null {
  return (resources as readonly unknown[]).includes(kind) ? (kind as Resource) : null;
}
