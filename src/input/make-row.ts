import { checkId, isPlaceholder } from '../model/check-id.ts';
import { type Resource, resources } from '../model/outcome.ts';
import type { Position, RejectCode, Row } from '../model/row.ts';
import type { InputOptions } from './input-options.ts';

/** Makes the rows of one file: settles the resource of each and whether its id can be sent. */
export type RowMaker = {
  /** A row with an id. `kind` is what the resource column holds; it is not looked at where --resource says it all. */
  row(line: number, id: string, kind: unknown): Row;
  /** A row that cannot be sent for a reason of its format. */
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
