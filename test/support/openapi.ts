import fc from 'fast-check';

/** A part of JSON Schema, as the description of the API uses it. */
export type Schema = {
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  pattern?: string;
  format?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
};

type Parameter = { name: string; in: string; required: boolean; schema: Schema };

type Content = Record<string, { schema?: Schema }>;

export type Operation = {
  parameters: Parameter[];
  requestBody?: { content: Content };
  responses: Record<string, { content: Content }>;
};

export type Description = { openapi: string; paths: Record<string, Record<string, Operation>> };

/** A request as it is sent. */
export type Made = { method: string; path: string; template: string; body: unknown; type: string | null };

/** Requests for every operation but the streams: of values as they are described, and sometimes of others. `known`: values for parts of paths. */
export function requestsOf({ paths }: Description, known: Record<string, readonly string[]>): fc.Arbitrary<Made> {
  const operations = Object.entries(paths).flatMap(([template, methods]) =>
    Object.entries(methods)
      .filter(([, { responses }]) => !Object.values(responses).some(({ content }) => 'text/event-stream' in content))
      .map(([method, operation]) => requestOf(template, method, operation, known)),
  );
  return fc.oneof(...operations);
}

function requestOf(template: string, method: string, operation: Operation, known: Record<string, readonly string[]>) {
  const within = operation.parameters.filter((parameter) => parameter.in === 'path');
  const queried = operation.parameters.filter((parameter) => parameter.in === 'query');
  const parts = fc.record(Object.fromEntries(within.map(({ name }) => [name, partOf(known[name] ?? [])])));
  const query = fc.record(
    Object.fromEntries(queried.map(({ name, schema }) => [name, oftenOr(valueFor(schema, known[name]))])),
    { requiredKeys: queried.filter(({ required }) => required).map(({ name }) => name) },
  );
  const content = Object.entries(operation.requestBody?.content ?? {});
  const [type = null, { schema }] = content[0] ?? [null, {}];
  const isJson = type === 'application/json';
  const body =
    type === null ? fc.constant(undefined) : isJson ? oftenOr(valueFor(schema ?? {}, undefined, known)) : listText;
  return fc.record({ parts, query, body }).map(({ parts, query, body }): Made => {
    const path = template.replace(/\{(\w+)\}/g, (_, name) =>
      encodeURIComponent(String((parts as Record<string, string>)[name])),
    );
    const search = new URLSearchParams(
      Object.entries(query as Record<string, unknown>).map(
        ([name, value]) => [name, wordOf(value)] as [string, string],
      ),
    );
    return { method: method.toUpperCase(), path: `${path}?${search}`, template, body, type };
  });
}

function wordOf(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const listText = fc.oneof(fc.constant('id\na\nb\n'), fc.string(), fc.constant(''));

function partOf(values: readonly string[]): fc.Arbitrary<string> {
  const other = fc.oneof(
    fc.string({ minLength: 1, maxLength: 50 }).filter((text) => !/^\.\.?$/.test(text)), // with those a URL names another path
    fc.constantFrom('...', '%00', 'a:b', '{', '*'),
  );
  return values.length === 0
    ? other
    : fc.oneof({ arbitrary: fc.constantFrom(...values), weight: 4 }, { arbitrary: other, weight: 1 });
}

function oftenOr<T>(value: fc.Arbitrary<T>): fc.Arbitrary<unknown> {
  return fc.oneof({ arbitrary: value as fc.Arbitrary<unknown>, weight: 9 }, { arbitrary: fc.jsonValue(), weight: 1 });
}

/** Values that fit a schema, as far as it says. */
function valueFor(
  schema: Schema,
  likely: readonly string[] = [],
  known: Record<string, readonly string[]> = {},
): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((one) => valueFor(one)));
  switch (schema.type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return fc.integer({ min: Math.max(schema.minimum ?? -1_000, -1e9), max: Math.min(schema.maximum ?? 1_000, 1e9) });
    case 'number':
      return fc.double({ min: schema.minimum ?? -1e6, max: schema.maximum ?? 1e6, noNaN: true });
    case 'array':
      return fc.array(valueFor(schema.items ?? {}), { minLength: schema.minItems ?? 0, maxLength: 3 });
    case 'object': {
      const entries = Object.entries(schema.properties ?? {}).map(([name, one]) => [name, valueFor(one, known[name])]);
      return fc.record(Object.fromEntries(entries), { requiredKeys: (schema.required ?? []) as never[] });
    }
    case 'string': {
      const bounds = { minLength: schema.minLength ?? 0, maxLength: Math.min(schema.maxLength ?? 40, 200) };
      const some = schema.pattern === undefined ? fc.string(bounds) : fc.stringMatching(new RegExp(schema.pattern));
      const usual = fc.constantFrom(
        '5/s',
        '100000/day',
        '10',
        '404=failed',
        '0 3 * * *',
        'UTC',
        'id',
        '2026-11-22T20:00:00Z',
        ...likely,
      );
      return fc.oneof(some, usual);
    }
    default:
      return fc.jsonValue();
  }
}
