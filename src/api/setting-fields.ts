import { z } from 'zod';
import { apiField, type SettingName, settings } from '../config/settings.ts';
import { resources } from '../model/resource.ts';

/** `max_deletes` for `maxDeletes`. */
export type Field<N extends string> = N extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Field<Rest>}`
  : N;

/** A resource that this server knows. */
const resourceField = z
  .string()
  .refine((text) => resources.includes(text), { error: () => `expected ${resources.join(', ')}` })
  .meta({
    get enum() {
      return [...resources];
    },
  });

const maxLength = 4_000; // a query has to fit into the head of a request

/** These settings as parameters of a query, each a text for its flag; all may be missing. */
export function queryFields<N extends SettingName>(names: readonly N[]) {
  return fieldsOf(names, (name) => kindOf(name, z.enum(['true', 'false'])).optional()) as Record<
    Field<N>,
    z.ZodOptional<z.ZodString>
  >;
}

/** These settings as fields of a JSON body, each a text for its flag, or true or false. All may be missing, and null = the default. */
export function bodyFields<N extends SettingName>(names: readonly N[]) {
  return fieldsOf(names, (name) => kindOf(name, z.boolean()).nullable().optional()) as Record<
    Field<N>,
    z.ZodOptional<z.ZodNullable<z.ZodString | z.ZodBoolean>>
  >;
}

function fieldsOf(names: readonly SettingName[], shapeOf: (name: SettingName) => z.ZodType): Record<string, z.ZodType> {
  return Object.fromEntries(names.map((name) => [apiField(name), shapeOf(name).describe(settings[name].help)]));
}

function kindOf(name: SettingName, flag: z.ZodType): z.ZodType {
  if (name === 'resource') return resourceField;
  return settings[name].arg === null ? flag : z.string().min(1).max(maxLength);
}

/** The fields of a request that replace the flags in a text, such as `--allow-empty`. */
export function findFields(text: string, known: readonly z.ZodType[]): string[] {
  const names = new Set(known.flatMap((shape) => (shape instanceof z.ZodObject ? Object.keys(shape.shape) : [])));
  const flags = [...text.matchAll(/(?<![\w-])--([a-z][a-z-]*[a-z])/g)].map(([, flag]) => flag!.replaceAll('-', '_'));
  return [...new Set(flags)].filter((field) => names.has(field));
}
