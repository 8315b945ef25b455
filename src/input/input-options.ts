import { type Config, settings } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { checkId, isPlaceholder } from '../model/check-id.ts';
import { type Resource, resources } from '../model/resource.ts';
import type { Position, RejectCode, Row } from '../model/row.ts';
import { inputError } from './input-error.ts';
import type { InputFile } from './open-inputs.ts';

export type Format = 'csv' | 'ndjson' | 'json' | 'lines';

/** How rows are read from the files of one run. Exactly one of `resource` and `resourceColumn` is set. */
export type InputOptions = {
  resource: Resource | null;
  resourceColumn: string | null;
  format: Format | null;
  column: string;
  noHeader: boolean;
  delimiter: string;
  allowIdChars: string;
  allowPlaceholders: boolean;
};

/** The settings that say how rows are read. */
export type InputSettings = Pick<Config, keyof InputOptions>;

/** The options of these settings; those that are not set become null. */
export function inputOptionsOf(given: InputSettings): InputOptions {
  const { column, noHeader, delimiter, allowIdChars, allowPlaceholders } = given;
  const { resource = null, resourceColumn = null, format = null } = given;
  return { resource, resourceColumn, format, column, noHeader, delimiter, allowIdChars, allowPlaceholders };
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

const formatAdvice = 'add --format csv, ndjson (an object or string a line), json (an array) or lines (an id a line)';

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
    throw new ExpungeError('USAGE', 'expected exactly one of --resource and --resource-column');
  }
  const used = files.map((file) => formatOf(file, options.format));
  if (resourceColumn && noHeader) {
    throw new ExpungeError(
      'USAGE',
      '--resource-column needs a header to name a column of; --no-header says there is none',
    );
  }
  const hasCells = used.length === 0 || used.includes('csv'); // the files of a schedule are not known yet
  if (hasCells && noHeader && column !== settings.column.fallback) {
    throw new ExpungeError(
      'USAGE',
      `--no-header takes the ids from the first column, and --column ${column} names one of a header`,
      { next: 'give the file a header; or take its first column: --no-header --column id, or without --column' },
    );
  }
  if (resourceColumn && used.includes('lines')) {
    throw new ExpungeError('USAGE', 'plain lines have no columns: use --resource, or --format csv');
  }
}

/** Makes the rows of one file, with the resource of each and whether its id can be sent. */
export type RowMaker = {
  /** A row with an id. `kind` is the value of the resource column; it is ignored with --resource. */
  row(line: number, id: string, kind: unknown): Row;
  /** A row that the format makes unusable. */
  rejected(line: number, id: string, reject: RejectCode): Row;
};

export function rowMaker(file: Position['file'], options: InputOptions): RowMaker {
  const resourceOf = (kind: unknown): Resource | null => options.resource ?? asResource(kind);
  return {
    row(line, id, kind) {
      const resource = resourceOf(kind);
      const reject = resource === null ? 'unknown_resource' : rejectOf(id, options);
      return { file, line, resource, id, reject };
    },
    rejected: (line, id, reject) => ({ file, line, resource: options.resource, id, reject }),
  };
}

function rejectOf(id: string, { allowIdChars, allowPlaceholders }: InputOptions): RejectCode | null {
  return isPlaceholder(id) && !allowPlaceholders ? 'placeholder' : checkId(id, allowIdChars);
}

function asResource(kind: unknown): Resource | null {
  return (resources as readonly unknown[]).includes(kind) ? (kind as Resource) : null;
}
