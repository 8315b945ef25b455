import { compileIdPattern } from '../config/id-pattern.ts';
import type { Config } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { checkId, checkLine, type IdRules, isPlain } from '../model/check-id.ts';
import { type Resource, resources, resourcesText, singularOf } from '../model/resource.ts';
import type { Position, RejectCode, Row } from '../model/row.ts';
import { HeaderCheck } from './header.ts';
import { inputError, shown } from './input-error.ts';
import type { InputFile } from './open-inputs.ts';
import { RoundedNumbers } from './rounded-numbers.ts';

export type Format = 'csv' | 'ndjson' | 'json' | 'lines';

/** How rows are read from the files of one run. Exactly one of `resource` and `resourceColumn` is set. */
export type InputOptions = IdRules & {
  resource: Resource | null;
  resourceColumn: string | null;
  format: Format | null;
  /** The column or field of the ids; null: `id`, which is refused if another column is named like the resource. */
  column: string | null;
  /** The flag that names the column, for messages. */
  columnFlag: '--column' | '--protect-column';
  noHeader: boolean;
  delimiter: string;
  idPattern: RegExp | null;
  allowColumnNames: boolean;
};

/** The settings that say how rows are read. */
export type InputSettings = Pick<Config, Exclude<keyof InputOptions, 'columnFlag'>>;

/** The options of these settings; those that are not set become null. */
export function inputOptionsOf(given: InputSettings): InputOptions {
  return {
    resource: given.resource ?? null,
    resourceColumn: given.resourceColumn ?? null,
    format: given.format ?? null,
    column: given.column ?? null,
    columnFlag: '--column',
    noHeader: given.noHeader,
    delimiter: given.delimiter,
    allowIdChars: given.allowIdChars,
    allowPlaceholders: given.allowPlaceholders,
    allowInvisible: given.allowInvisible,
    allowDamagedNumbers: given.allowDamagedNumbers,
    allowColumnNames: given.allowColumnNames,
    idPattern: given.idPattern === undefined ? null : compileIdPattern(given.idPattern),
  };
}

/** The column of the ids where nobody names one. */
export const defaultColumn = 'id';

export function columnOf({ column }: Pick<InputOptions, 'column'>): string {
  return column ?? defaultColumn;
}

const formats: Record<string, Format> = {
  ...{ csv: 'csv', tsv: 'csv' },
  ...{ ndjson: 'ndjson', jsonl: 'ndjson', json: 'json' },
  txt: 'lines',
};

/** The requested format, else the format by the file name, else lines on stdin. Throws USAGE if none of these applies. */
export function formatOf(file: Pick<InputFile, 'name' | 'isStdin'>, asked: Format | null): Format {
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
  'add --format csv, --format lines (an id a line), --format ndjson (an object or string a line) or --format json (an array)';

/** The format by the extension of a file name, if it is known. */
export function formatByName(name: string): Format | undefined {
  return formats[extensionOf(name)];
}

/** The requested delimiter; the default for a .tsv file is a tab. */
export function delimiterOf(file: InputFile, asked: string): string {
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
  const used = files.map((file) => formatOf(file, options.format));
  if (resourceColumn && noHeader) {
    throw new ExpungeError(
      'USAGE',
      '--resource-column needs a header to name a column of; --no-header says there is none',
      { next: `omit --no-header; or replace --resource-column by --resource ${resources.join(' or --resource ')}` },
    );
  }
  const hasCells = used.length === 0 || used.includes('csv'); // the files of a schedule are not known yet
  if (hasCells && noHeader && column !== null && column !== defaultColumn) {
    throw new ExpungeError(
      'USAGE',
      `--no-header takes the ids from the first column, and ${options.columnFlag} ${column} names one of a header`,
      { next: 'give the file a header; or take its first column: --no-header --column id, or without --column' },
    );
  }
  if (resourceColumn && used.includes('lines')) {
    throw new ExpungeError('USAGE', 'plain lines have no columns, which --resource-column needs', {
      next: `replace it by --resource ${resources.join(' or --resource ')}; or, for a table: --format csv`,
    });
  }
}

/** Makes the rows of one file, with the resource of each and whether its id can be sent. */
export type RowMaker = {
  /**
   * A row with an id. `kind`: the value of the resource column, or with --resource that of a column named `resource`, if there is one.
   * `cells`: those of the row of a table, or the text of a line.
   */
  row(line: number, id: string, kind: unknown, cells?: readonly string[] | string): Row;
  /** A row that the format makes unusable. */
  rejected(line: number, id: string, reject: RejectCode): Row;
  /** Call it behind the last row. Throws USAGE if the ids as a whole look damaged. */
  end(): void;
};

/** What a file is: its place in the list, its name, and the format that it is read in. */
export type FileFacts = { file: Position['file']; name: string; format: Format };

/** `header`: the cells of its header; [] if it has none. */
export function rowMaker(facts: FileFacts, options: InputOptions, header: readonly string[] = []): RowMaker {
  const { file, name, format } = facts;
  const numbers = new RoundedNumbers();
  const kindColumn = header.map((cell) => cell.trim()).find((cell) => /^resource$/i.test(cell)) ?? 'resource';
  const said: Kinds = { ...options, kindColumn };
  const firstRow = format === 'lines' || (format === 'csv' && options.noHeader);
  const { allowColumnNames } = options;
  const headers = new HeaderCheck({ name, column: columnOf(options), allowColumnNames, firstRow }, header);
  return {
    row(line, id, kind, cells = id) {
      const resource = resourceFor(kind, line, name, said);
      if (headers.isRepeated(line, id, cells)) {
        return { file, line, resource, id, reject: 'repeated_header' };
      }
      numbers.add(line, id);
      const reject = resource === null ? 'unknown_resource' : rejectOf(id, format, options);
      return { file, line, resource, id, reject };
    },
    rejected: (line, id, reject) => ({ file, line, resource: options.resource, id, reject }),
    end: () => {
      if (!options.allowDamagedNumbers) numbers.refuse(name);
    },
  };
}

function resourceFor(
  kind: unknown,
  line: number,
  name: string,
  { resource, columnFlag, kindColumn }: Kinds,
): Resource | null {
  if (resource === null) return asResource(kind);
  if (typeof kind === 'string' && columnFlag === '--column')
    refuseOtherKind(kind, resource, kindColumn, { line, name });
  return resource;
}

/** `kindColumn`: the column named `resource`, as the header writes it. */
type Kinds = Pick<InputOptions, 'resource' | 'columnFlag'> & { kindColumn: string };

/** A list that says of itself what its ids are is not overruled without a word. */
function refuseOtherKind(
  kind: string,
  resource: Resource,
  column: string,
  { line, name }: { line: number; name: string },
): void {
  const word = kind.trim().toLowerCase();
  const said = resources.find((known) => word === known || word === singularOf(known));
  if (said === undefined || said === resource) return;
  const message = `the column ${shown(column)} says ${shown(kind)}, but --resource is ${resource}; nothing was sent`;
  const next = `--resource-column ${column} in place of --resource reads the resource of each row`;
  const words = word === said ? next : `${next}; its values have to be ${resourcesText('or')}`;
  throw inputError(name, line, message, words);
}

function rejectOf(id: string, format: Format, options: InputOptions): RejectCode | null {
  const plainly = isPlain(id);
  const reject = checkId(id, options, plainly);
  if (reject !== null) return reject;
  if (format === 'lines' && !plainly) {
    const foreign = checkLine(id, options.allowIdChars);
    if (foreign !== null) return foreign;
  }
  return options.idPattern === null || options.idPattern.test(id) ? null : 'pattern_mismatch';
}

function asResource(kind: unknown): Resource | null {
  return (resources as readonly unknown[]).includes(kind) ? (kind as Resource) : null;
}
