import { z } from 'zod';
import { keyPattern } from './idempotency.ts';
import type { Route } from './route.ts';
import { commands } from './shapes.ts';

const jsonType = 'application/json';

/** The description of the API in OpenAPI 3.1, from the table of its routes. `cookieName`: the name of the session cookie here. Pure. */
export function describeApi(routes: readonly Route[], version: string, cookieName: string) {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route) };
  return {
    openapi: '3.1.0',
    info: {
      title: 'expunge',
      version,
      description: 'Runs, schedules and targets of one Redis. Times are ISO 8601 UTC.',
    },
    servers: [{ url: '/api/v1' }],
    security: [{ token: [] }, { session: [] }],
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer' },
        session: { type: 'apiKey', in: 'cookie', name: cookieName },
      },
      schemas: { Problem: schemaOf(problem, 'output') },
    },
  };
}

const problem = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  code: z.string(),
  next: z.string().optional(),
  commands,
});

function operationOf(route: Route) {
  const { method, path, role, summary, query, body, upload, answer, types, status, isCreating, mayTakeLong } = route;
  const shown = answer === null ? {} : { schema: schemaOf(answer, 'output') };
  const content = Object.fromEntries(types.map((type) => [type, shown]));
  return {
    operationId: `${method} ${path}`.replace(/[^a-z]+/gi, '_').replace(/_$/, ''),
    summary,
    description: `Needs the role ${role}.`,
    parameters: [...pathParameters(path), ...queryParameters(query), ...(isCreating ? [idempotencyKey] : [])],
    ...(body !== null && {
      requestBody: { required: true, content: { [jsonType]: { schema: schemaOf(body, 'input') } } },
    }),
    ...(upload.length > 0 && {
      requestBody: {
        required: true,
        content: Object.fromEntries(upload.map((one) => [one, { schema: { type: 'string' } }])),
      },
    }),
    responses: {
      [status]: { description: 'done', content },
      ...(mayTakeLong && { 202: { description: late, content } }),
      default: {
        description: 'a problem',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
  };
}

const late =
  'the action is still being carried out, and this is the run as it is now; if the action fails after all, `audit` of the run gets an entry with the action `failed`, whose `failedAction` and `error` say what failed and why';

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  schema: { type: 'string', minLength: 1, maxLength: 100, pattern: keyPattern.source },
  description:
    'requests with the same key within a day are carried out once and get the same answer; if the first one broke off, it is completed, or the run that it made is answered',
};

function pathParameters(path: string) {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', minLength: 1, maxLength: 200 },
  }));
}

function queryParameters(query: Route['query']) {
  const { properties = {}, required = [] } = schemaOf(query, 'input') as {
    properties?: Record<string, { description?: string }>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
    ...(description !== undefined && { description }),
  }));
}

/** A schema without `$schema`, which belongs to the document. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}
