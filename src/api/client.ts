import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config/settings.ts';
import { type ErrorCode, ExpungeError } from '../errors.ts';
import { openDispatcher } from '../http/send-once.ts';
import type { Role } from '../model/role.ts';
import { type Advice, readAdvice } from '../model/to-type.ts';
import { visibleLine } from '../model/visible.ts';
import { explainConnectionError } from '../system-errors.ts';
import { bareToken, readTokenFile, readTokenVariable } from '../token/bearer-token.ts';
import { readVersion, userAgent } from '../version.ts';
import type { ProblemDocument, ProblemKind } from './problem.ts';
import { type AnsweredWarnings, readCommands, readWarnings } from './warnings.ts';

/** A request to the API; `path` is below /api/v1. */
type ApiRequest = {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  query?: Readonly<Record<string, string | undefined>>;
  body?: unknown; // sent as JSON
  upload?: { type: string; parts: AsyncIterable<Uint8Array> };
  idempotencyKey?: string;
  /** Whether the server reads or writes a whole list before it answers, or between two parts of its answer. */
  isLong?: true;
  signal?: AbortSignal;
};

type Settings = Pick<Config, 'server' | 'serverTokenFile'>;

/** How long the server may be silent, in ms. */
type ClientTimeouts = { answer: number; longAnswer: number };

const defaultTimeouts: ClientTimeouts = { answer: 30_000, longAnswer: 3_600_000 };
const maxTries = 3;
const betweenTriesMs = 1_000;
const maxAnswerBytes = 64 * 1_024 ** 2;
const maxProblemBytes = 64 * 1_024;

type Dispatcher = Awaited<ReturnType<typeof openDispatcher>>;
type Connection = { url: string; authorization: string; timeouts: ClientTimeouts; dispatcher: Dispatcher };
type Answer = Awaited<ReturnType<Dispatcher['request']>>;

/**
 * Calls `body` with the API of the server that the settings name. Throws USAGE if the server is not expunge or has another version, and CREDENTIALS
 * without a token, or with a token that the server does not know. By then the server has received no action.
 */
export async function withServer<T>(
  { config: settings, env }: { config: Settings; env: NodeJS.ProcessEnv },
  say: (line: string) => void,
  body: (api: ApiClient) => Promise<T>,
  timeouts = defaultTimeouts,
): Promise<T> {
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0')
    throw new ExpungeError('USAGE', 'NODE_TLS_REJECT_UNAUTHORIZED=0 would send the token to any server', {
      next: 'unset it; trust a certificate authority of your own with NODE_EXTRA_CA_CERTS=FILE',
    });
  const url = settings.server!;
  const authorization = readServerToken(settings, env);
  const dispatcher = await openDispatcher(new URL(url).origin, { ca: null, proxy: null });
  const api = new ApiClient({ url, authorization, timeouts, dispatcher });
  try {
    const me = await api.json<Me>({ method: 'GET', path: '/me' });
    refuseOtherVersion(api.url, me);
    api.role = me.role;
    say(`Server: ${api.url}, as ${visibleLine(me.name)} (${visibleLine(me.role)})`);
    return await body(api);
  } finally {
    await api.close();
  }
}

/** The `Authorization` header. Throws CREDENTIALS without a token. */
function readServerToken({ serverTokenFile: path }: Settings, env: NodeJS.ProcessEnv): string {
  if (path !== undefined) return readTokenFile('EXPUNGE_SERVER_TOKEN_FILE', path);
  if (env.EXPUNGE_SERVER_TOKEN) return readTokenVariable('EXPUNGE_SERVER_TOKEN', env.EXPUNGE_SERVER_TOKEN);
  throw new ExpungeError('CREDENTIALS', 'expected a token for the server, got none', { next: tokenAdvice });
}

const tokenAdvice: Advice = (toType) =>
  `set EXPUNGE_SERVER_TOKEN, or name a file in EXPUNGE_SERVER_TOKEN_FILE; ${toType('token add', 'NAME')} makes one`;

type Me = { name: string; role: Role; version?: unknown };

/** Throws for another version: versions differ in what they store of a run, and so in what a server sends about it. */
function refuseOtherVersion(url: string, { version }: Me): void {
  const ours = readVersion();
  if (typeof version !== 'string') throw notOurs(url, 'it does not say its version');
  if (minorVersion(version) === minorVersion(ours)) return;
  throw new ExpungeError('USAGE', `the server ${url} is expunge ${visibleLine(version)}, and this is ${ours}`, {
    next: 'use the same version of expunge on both sides, or a command where Redis can be reached',
  });
}

/** `1.4` for `1.4.2`. */
function minorVersion(version: string): string {
  return version.split('.').slice(0, 2).join('.');
}

/** An earlier request with the same key is not answered yet. Repeat it after this many seconds. */
class BeingDone extends ExpungeError {
  seconds = 0;
}

/** The API of one server. */
export class ApiClient {
  readonly url: string;
  role: Role = 'read'; // role of the token, once the server has sent it
  readonly #authorization: string;
  readonly #timeouts: ClientTimeouts;
  readonly #dispatcher: Dispatcher;

  constructor({ url, authorization, timeouts, dispatcher }: Connection) {
    this.url = url;
    this.#authorization = authorization;
    this.#timeouts = timeouts;
    this.#dispatcher = dispatcher;
  }

  /** The JSON of an answer. A refusal by the server is thrown as the error that a command would have. */
  async json<T>(request: ApiRequest): Promise<T> {
    return (await this.#read<T>(request)).value;
  }

  /** Asks for an action that may take long. Returns its warnings and whether it changed anything, or null if the server answers before it is done. */
  async action(path: string, body: unknown): Promise<{ warnings: Advice[]; changed: boolean } | null> {
    const { value, isLate } = await this.#read<AnsweredWarnings & { changed?: boolean }>({
      method: 'POST',
      path,
      body,
    });
    return isLate ? null : { warnings: readWarnings(value), changed: value.changed ?? true };
  }

  /**
   * Posts a request that creates something. It has a key: if its answer is lost it is sent again and gets the same answer, and nothing is created
   * twice. While it is still being carried out, it is repeated until it is answered, for as long as an answer may take.
   */
  async create<T>(path: string, body: unknown, isLong = true): Promise<T> {
    const request: ApiRequest = { method: 'POST', path, body, idempotencyKey: randomUUID(), ...(isLong && { isLong }) };
    const until = performance.now() + (isLong ? this.#timeouts.longAnswer : this.#timeouts.answer);
    for (let lost = 0; ; ) {
      try {
        return await this.json<T>(request);
      } catch (error) {
        if (!(error instanceof ExpungeError) || error.code !== 'UNREACHABLE') throw error;
        const leftMs = until - performance.now();
        if (error instanceof BeingDone ? leftMs <= 0 : ++lost === maxTries) throw error;
        await sleep(error instanceof BeingDone ? Math.min(error.seconds * 1_000, leftMs) : betweenTriesMs);
      }
    }
  }

  /** The text of an answer of this media type, as it comes. Throws UNREACHABLE if it breaks off. */
  async *text(request: ApiRequest, type: string): AsyncGenerator<string> {
    const answer = await this.#send(request, type);
    const decoder = new TextDecoder();
    try {
      for await (const part of answer.body) yield decoder.decode(part as Uint8Array, { stream: true });
    } catch (error) {
      throw this.#unreachable(error, request);
    }
  }

  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }

  async #read<T>(request: ApiRequest): Promise<{ value: T; isLate: boolean }> {
    const answer = await this.#send(request, 'application/json');
    const value = this.#parse<T>(await this.#textOf(answer, maxAnswerBytes, request));
    return { value, isLate: answer.statusCode === 202 };
  }

  /** The answer; throws unless it is of this media type. */
  async #send(request: ApiRequest, type: string): Promise<Answer> {
    const silentMs = request.isLong ? this.#timeouts.longAnswer : this.#timeouts.answer;
    const { pathname } = new URL(this.url);
    const path = `${pathname.replace(/\/$/, '')}/api/v1${request.path}${queryOf(request)}`;
    const { headers, body } = bodyOf(request);
    const options = { path, method: request.method, headersTimeout: silentMs, bodyTimeout: silentMs, body };
    const own = { authorization: this.#authorization, 'user-agent': userAgent };
    let answer: Answer;
    try {
      answer = await this.#dispatcher.request({
        ...options,
        origin: new URL(this.url).origin,
        signal: request.signal ?? null,
        headers: { ...headers, ...own },
      });
    } catch (error) {
      throw this.#unreachable(error, request);
    }
    if (answer.statusCode < 200 || answer.statusCode >= 300) throw await this.#refusal(answer, request);
    if (!isOfType(answer, type)) throw notOurs(this.url, describeAnswer(answer));
    return answer;
  }

  /** The error in an answer without success, with the token removed in case the answer repeats it. */
  async #refusal(answer: Answer, request: ApiRequest): Promise<ExpungeError> {
    const { statusCode: status, headers } = answer;
    if (!isOfType(answer, 'application/problem+json')) {
      await answer.body.dump().catch(() => {});
      if (status >= 300 && status < 400) return redirected(this.url, String(headers.location ?? ''));
      if (status < 500) return notOurs(this.url, describeAnswer(answer));
      return new ExpungeError('UNREACHABLE', `the server ${this.url} cannot be used now (${status})`, {
        next: doubtAbout(request),
      });
    }
    const text = await this.#textOf(answer, maxProblemBytes, request);
    const problem = text.replaceAll(bareToken(this.#authorization), '***');
    const { code, detail, next, commands, seconds } = this.#parse<ProblemDocument>(problem);
    const said = visibleLine(String(detail));
    if (code === 'conflict' && typeof seconds === 'number')
      return Object.assign(new BeingDone('UNREACHABLE', said, { next: doubtAbout(request) }), { seconds });
    const shown =
      typeof next === 'string' && isForCommands(code)
        ? readAdvice(visibleLine(next), readCommands(commands))
        : (advice[code] ?? null);
    return new ExpungeError(codes[code] ?? 'USAGE', said, { next: shown });
  }

  #parse<T>(text: string): T {
    try {
      return JSON.parse(text);
    } catch {
      throw notOurs(this.url, 'its answer is not JSON');
    }
  }

  async #textOf({ body }: Answer, maxBytes: number, request: ApiRequest): Promise<string> {
    const parts: Uint8Array[] = [];
    let bytes = 0;
    try {
      for await (const part of body as AsyncIterable<Uint8Array>) {
        bytes += part.length;
        if (bytes > maxBytes) throw new Error(`its answer is longer than ${maxBytes} bytes`);
        parts.push(part);
      }
    } catch (error) {
      throw this.#unreachable(error, request);
    }
    return Buffer.concat(parts).toString();
  }

  #unreachable(error: unknown, request: ApiRequest): ExpungeError {
    if (error instanceof ExpungeError) return error; // from the list that was sent
    const { words, next } = explainConnectionError(error);
    const ours = next?.includes('--ca-file') ? authorityAdvice : next?.replace(/, or http:.*/, '');
    return new ExpungeError('UNREACHABLE', `the server ${this.url} cannot be reached: ${words}`, {
      cause: error,
      next: [ours, doubtAbout(request)].filter(Boolean).join('\n') || null,
    });
  }
}

const authorityAdvice = 'trust that authority with NODE_EXTRA_CA_CERTS=FILE, if it is yours';

/** Whether the server, or its Redis, gave no answer: an action may be carried out nevertheless. */
export function isAway(error: unknown): boolean {
  return error instanceof ExpungeError && error.code === 'UNREACHABLE';
}

/** The doubt about a request without an answer. */
function doubtAbout({ method }: ApiRequest): string | null {
  return method === 'GET' ? null : 'the server may already have done this; it is safe to repeat the command';
}

function queryOf({ query = {} }: ApiRequest): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

function bodyOf({ body, upload, idempotencyKey: key }: ApiRequest) {
  const headers: Record<string, string> = key === undefined ? {} : { 'idempotency-key': key };
  if (upload !== undefined)
    return { headers: { ...headers, 'content-type': upload.type }, body: Readable.from(upload.parts) };
  if (body === undefined) return { headers, body: null };
  return { headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
}

function isOfType({ headers }: Answer, type: string): boolean {
  return String(headers['content-type'] ?? '').split(';', 1)[0] === type;
}

function describeAnswer({ statusCode, headers }: Answer): string {
  return `it answers ${statusCode}, ${visibleLine(String(headers['content-type'] ?? 'without a type')).slice(0, 100)}`;
}

function notOurs(url: string, what: string): ExpungeError {
  return new ExpungeError('USAGE', `no API of expunge is at ${url}: ${what}`, {
    next: 'give the address of a dashboard, or of a worker with --http',
  });
}

function redirected(url: string, location: string): ExpungeError {
  const to = URL.canParse(location, url) ? new URL(location, url).origin : 'elsewhere';
  return new ExpungeError('USAGE', `the server ${url} redirects to ${to}, but the token is not sent there`, {
    next: 'name that address instead, if it is right',
  });
}

/** Problems that commands do not have, and their exit codes. */
const codesOfProblems: Partial<Record<ProblemKind, ErrorCode>> = {
  unauthenticated: 'CREDENTIALS',
  forbidden: 'CREDENTIALS',
  unavailable: 'UNREACHABLE',
  slow: 'UNREACHABLE',
  too_many: 'UNREACHABLE',
  no_space: 'UNREACHABLE',
  internal: 'INTERNAL',
};

/** Codes of all problems; a missing one is USAGE. */
const codes: Readonly<Record<string, ErrorCode | undefined>> = {
  guard: 'GUARD',
  credentials: 'CREDENTIALS',
  unreachable: 'UNREACHABLE',
  interrupted: 'UNREACHABLE',
  ...codesOfProblems,
};

const advice: Readonly<Record<string, Advice>> = {
  unauthenticated: tokenAdvice,
  forbidden: (toType) => `ask for a token with that role: ${toType('token add', 'NAME', '--role', 'ROLE')}`,
  internal: 'the log of the server says more',
};

/** Whether the advice of a problem is for a person at a command line: other advice names routes and headers. */
function isForCommands(code: string): boolean {
  return ['usage', 'guard', 'credentials', 'unreachable', 'interrupted', 'conflict', 'no_space', 'wrong_host'].includes(
    code,
  );
}
