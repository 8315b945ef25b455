import { type ErrorCode, ExpungeError, messageOf } from '../errors.ts';
import { capital } from '../format.ts';
import type { Log } from '../logger.ts';
import { type Advice, spellOut, type TypedWords } from '../model/to-type.ts';
import { describeRedisError, isRedisError } from '../redis/errors.ts';
import { html, noMarkup } from '../report/html.ts';

/** The short codes of problems that commands do not have. */
const kinds = {
  invalid: [400, 'the request is not as the API describes it'],
  unauthenticated: [401, 'not logged in'],
  forbidden: [403, 'you are not allowed to do that'],
  wrong_host: [403, 'this server does not answer under that name'],
  cross_site: [403, 'the request comes from another site'],
  not_found: [404, 'there is no such thing'],
  method_not_allowed: [405, 'this path takes other methods'],
  slow: [408, 'the request took too long'],
  conflict: [409, 'things are not as the request expects'],
  too_large: [413, 'the body is too large'],
  unprocessable: [422, 'another request had that Idempotency-Key'],
  too_many: [429, 'too many requests'],
  internal: [500, 'internal error'],
  unavailable: [503, 'not possible now'],
  no_space: [507, 'this server has no room for it'],
} as const satisfies Record<string, readonly [status: number, title: string]>;

export type ProblemKind = keyof typeof kinds;

/** An error as the API answers it. `facts` are added to the document. Neither contains a secret. */
export class Problem extends Error {
  readonly kind: ProblemKind;
  readonly next: Advice | null;
  readonly facts: Record<string, unknown>;

  constructor(kind: ProblemKind, detail: string, next: Advice | null = null, facts: Record<string, unknown> = {}) {
    super(detail);
    this.name = 'Problem';
    this.kind = kind;
    this.next = next;
    this.facts = facts;
  }
}

/** The parsed text. Throws `invalid` with the error of `parse` and the place of the text in the request. */
export function parsedAs<T>(where: string, text: string, parse: (text: string) => T): T {
  try {
    return parse(text);
  } catch (error) {
    throw new Problem('invalid', `${where}: ${messageOf(error)}`);
  }
}

/** A problem document, RFC 9457. */
export type ProblemDocument = {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  next?: string;
  commands?: readonly TypedWords[]; // the commands in `next`, so that a client can write them as its user has to type them
  [fact: string]: unknown;
};

const ofCommands: Partial<Record<ErrorCode, readonly [status: number, title: string]>> = {
  USAGE: [422, 'the action cannot be carried out'],
  GUARD: [409, 'a guard refuses it'],
  CREDENTIALS: [422, 'the credentials cannot be used'],
  UNREACHABLE: [503, 'Redis cannot be used now'],
  INTERRUPTED: [503, 'the server is stopping'],
};

/** The document of an error. An unexpected error may contain anything, so it is logged and its text is not sent. */
export function toProblem(error: unknown, log: Log, path: string): ProblemDocument {
  if (error instanceof Problem) return documentOf(error.kind, error.message, error.next, error.facts);
  if (error instanceof ExpungeError) {
    const [status, title] = ofCommands[error.code] ?? kinds.internal;
    return document(status, title, error.code.toLowerCase(), error.message, error.advice);
  }
  if (isRedisError(error)) return documentOf('unavailable', `Redis: ${describeRedisError(error)}`, 'try it again soon');
  log.error({ path, reason: messageOf(error) }, 'a request over HTTP failed');
  return documentOf('internal', 'it is in the log of the server', null);
}

function documentOf(
  kind: ProblemKind,
  detail: string,
  next: Advice | null,
  facts: Record<string, unknown> = {},
): ProblemDocument {
  const [status, title] = kinds[kind];
  return { ...document(status, title, kind, detail, next), ...facts };
}

function document(status: number, title: string, code: string, detail: string, next: Advice | null): ProblemDocument {
  const problem = { type: 'about:blank', title, status, detail, code };
  if (next === null) return problem;
  const { text, commands } = spellOut(next);
  return { ...problem, next: text, ...(commands.length > 0 && { commands }) };
}

/** The answer with a problem. */
export function problemAnswer(problem: ProblemDocument, headers: Record<string, string> = {}): Response {
  const type = { 'content-type': 'application/problem+json' };
  return new Response(JSON.stringify(problem), { status: problem.status, headers: { ...type, ...headers } });
}

const againSeconds = 5;

/** The problem as a page for a browser. If time may solve it, the page reloads itself. */
export function problemPage({ title, detail, next, status }: ProblemDocument): Response {
  const isPassing = status >= 500 || status === 429;
  const again = html`<meta http-equiv="refresh" content="${againSeconds}" />`;
  const words = html`<p>This page tries again every ${againSeconds} seconds. Runs do not need it.</p>`;
  const page = html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    ${isPassing ? again : noMarkup}
    <title>${title} · expunge</title>
    <link rel="stylesheet" href="/assets/style.css" />
  </head>
  <body>
    <main class="login">
      <h1>${capital(title)}</h1>
      <p>${capital(detail)}.${next === undefined ? noMarkup : html` Next: ${next}.`}</p>
      ${isPassing ? words : noMarkup}
      <p><a href="/">See all runs</a></p>
    </main>
  </body>
</html>`;
  return new Response(page.markup, { status, headers: { 'content-type': 'text/html; charset=utf-8' } });
}

/** The result of `work`, which is not stopped; throws `late` if it takes longer than `ms`. */
export async function inTime<T>(ms: number, work: Promise<T>, late: Problem): Promise<T> {
  work.catch(() => {}); // it may still fail after that
  let timer: NodeJS.Timeout | undefined;
  const waited = new Promise<never>((_, reject) => {
    timer = setTimeout(reject, ms, late).unref();
  });
  try {
    return await Promise.race([work, waited]);
  } finally {
    clearTimeout(timer);
  }
}
