import type { Context } from 'hono';
import { z } from 'zod';
import type { Sources } from '../config/read-config.ts';
import type { Config } from '../config/settings.ts';
import type { Log } from '../logger.ts';
import type { Role } from '../model/role.ts';
import type { EarlySession } from '../operations/session.ts';
import type { Caller } from './access.ts';
import { Problem } from './problem.ts';
import type { Streams } from './streams.ts';

/** The dependencies of every route. */
export type ApiDeps = {
  session: EarlySession;
  config: Config;
  sources: Sources;
  env: NodeJS.ProcessEnv;
  log: Log;
  streams: Streams;
  /** The fingerprint of the target whose worker this server is: its settings and sources are for that target only. Null in a dashboard. */
  workerOf: string | null;
};

type Shape = z.ZodType<Record<string, unknown>>;

/** A request that was checked. */
export type Call<Q = Record<string, unknown>, B = Record<string, unknown>> = {
  deps: ApiDeps;
  caller: Caller;
  params: Record<string, string>;
  query: Q;
  body: B;
  context: Context;
  /** Whether the caller may still see this: their token may be revoked in the meantime. */
  isStillAllowed(): Promise<boolean>;
  /** Called with the id of the run that the request makes, before the run is written: a repetition of the request reports that run. */
  onRun(run: string): Promise<void>;
};

/**
 * The subject of a route: the run, plan or target that its path names, the target that its query or body names, what its handler finds within the
 * reach of the caller, or everything.
 */
export type About = 'run' | 'plan' | 'target' | 'within reach' | 'everything';

/** One operation of the API. Serving it, its description and its tests are all derived from this. */
export type Route = {
  method: 'get' | 'post' | 'delete';
  path: string; // below /api/v1: `/runs/{run}/pause`
  role: Role;
  about: About; // what `api/reach.ts` checks for a token that is bound to targets
  summary: string;
  query: Shape;
  body: Shape | null; // null: the route reads no JSON
  upload: readonly string[]; // content types of a streamed body; [] = none
  answer: z.ZodType | null; // schema of a JSON answer; null: a stream
  types: readonly string[]; // content types of the answer, the default one first
  status: 200 | 201;
  isCreating: boolean; // whether it takes an Idempotency-Key
  made(params: Record<string, string>, run: string): object; // the answer to a repetition if the first request broke off after it had made the run
  mayTakeLong: boolean; // answers 202 while the action is still being carried out
  handle(call: Call): Promise<unknown>;
};

type Given<Q extends Shape, B extends Shape> = Pick<Route, 'method' | 'path' | 'role' | 'summary'> &
  Partial<Pick<Route, 'about' | 'upload' | 'answer' | 'types' | 'status' | 'isCreating' | 'made' | 'mayTakeLong'>> & {
    query?: Q;
    body?: B;
    handle(call: Call<z.output<Q>, z.output<B>>): Promise<unknown>;
  };

const nothing = z.strictObject({});

export function route<Q extends Shape = typeof nothing, B extends Shape = typeof nothing>(given: Given<Q, B>): Route {
  const { query, body, handle, ...others } = given;
  return {
    about: aboutOf(given.path),
    upload: [],
    answer: z.looseObject({}),
    types: ['application/json'],
    status: 200,
    isCreating: false,
    mayTakeLong: false,
    made: (_, run) => ({ run, warnings: [] }),
    ...others,
    query: query ?? nothing,
    body: body ?? null,
    handle: handle as Route['handle'],
  };
}

/** The subject that a path implies. The default is everything, so a route that forgot to state its subject shows a bound token nothing. */
function aboutOf(path: string): About {
  if (path.includes('{run}')) return 'run';
  if (path.includes('{plan}')) return 'plan';
  return path.includes('{fp}') ? 'target' : 'everything';
}

/** The value, which fits a schema. Throws `invalid` with what was expected and where. */
export function checked<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues
    .slice(0, 10)
    .map(({ path, message }) => ({ at: [where, ...path].join('.'), message }));
  const [first] = issues;
  throw new Problem('invalid', `${first!.at}: ${first!.message}`, 'GET /api/v1/openapi.json describes it', { issues });
}
