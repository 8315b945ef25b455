type Schema = Record<string, unknown>;

/** Whether a schema accepts a value, as an editor would say. It knows the keywords that the schema of this repository has, and throws for any other. */
export function accepts(schema: Schema, value: unknown): boolean {
  return Object.entries(schema).every(([keyword, expected]) => {
    const check = keywords[keyword];
    if (check === undefined) throw new Error(`the keyword ${keyword} is not known here`);
    return check(expected as never, value, schema);
  });
}

type Check = (expected: never, value: unknown, schema: Schema) => boolean;

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const ifObject = (value: unknown, check: (object: Schema) => boolean) => !isObject(value) || check(value);
const ifText = (value: unknown, check: (text: string) => boolean) => typeof value !== 'string' || check(value);
const ifList = (value: unknown, check: (list: unknown[]) => boolean) => !Array.isArray(value) || check(value);
const ifNumber = (value: unknown, check: (number: number) => boolean) => typeof value !== 'number' || check(value);

const types: Record<string, (value: unknown) => boolean> = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === 'string',
  integer: Number.isInteger,
  boolean: (value) => typeof value === 'boolean',
};

const keywords: Record<string, Check> = {
  $schema: () => true,
  title: () => true,
  description: () => true,
  default: () => true,
  format: () => true,
  type: (expected: string | string[], value) => [expected].flat().some((name) => types[name]!(value)),
  const: (expected: unknown, value) => value === expected,
  enum: (expected: unknown[], value) => expected.includes(value),
  not: (expected: Schema, value) => !accepts(expected, value),
  anyOf: (expected: Schema[], value) => expected.some((schema) => accepts(schema, value)),
  pattern: (expected: string, value) => ifText(value, (text) => new RegExp(expected, 'u').test(text)),
  minLength: (expected: number, value) => ifText(value, ({ length }) => length >= expected),
  maxLength: (expected: number, value) => ifText(value, ({ length }) => length <= expected),
  minimum: (expected: number, value) => ifNumber(value, (number) => number >= expected),
  maximum: (expected: number, value) => ifNumber(value, (number) => number <= expected),
  items: (expected: Schema, value) => ifList(value, (list) => list.every((item) => accepts(expected, item))),
  minItems: (expected: number, value) => ifList(value, ({ length }) => length >= expected),
  maxItems: (expected: number, value) => ifList(value, ({ length }) => length <= expected),
  uniqueItems: (_: true, value) => ifList(value, (list) => new Set(list).size === list.length),
  required: (expected: string[], value) =>
    ifObject(value, (object) => expected.every((name) => Object.hasOwn(object, name))),
  maxProperties: (expected: number, value) => ifObject(value, (object) => Object.keys(object).length <= expected),
  propertyNames: (expected: Schema, value) =>
    ifObject(value, (object) => Object.keys(object).every((name) => accepts(expected, name))),
  properties: (expected: Record<string, Schema>, value) =>
    ifObject(value, (object) =>
      Object.entries(expected).every(([name, schema]) => !Object.hasOwn(object, name) || accepts(schema, object[name])),
    ),
  additionalProperties: (expected: false | Schema, value, { properties = {} }) =>
    ifObject(value, (object) =>
      Object.entries(object).every(
        ([name, item]) => Object.hasOwn(properties as Schema, name) || (expected !== false && accepts(expected, item)),
      ),
    ),
};
