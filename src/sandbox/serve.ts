import { chmod, readFile, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { ExpungeError } from '../errors.ts';
import { definitionOf, type RequestForm, type Resource } from '../model/resource.ts';
import { explainFileError, systemCode } from '../system-errors.ts';
import { answerDeleted, answerFault, answerJson, type Paths } from './answer.ts';
import type { Fault } from './fault-kinds.ts';
import type { FaultPicker } from './faults.ts';
import { type Journal, journalPage, noteDeleteAnswer, noteExecuted, noteStatus } from './journal.ts';
import type { ObjectStore } from './objects.ts';
import type { Limiter } from './rate-limit.ts';
import { answerTokenRequest, type TokenService } from './tokens.ts';

/** The path of the token endpoint: at the root for any base path, because an authorization server is another service. */
export const tokenPath = '/oauth/token';

/** The path at which a recording sandbox serves its journal. It does not belong to the API, and its requests do not count. */
export const journalPath = '/journal';

/** The state of a sandbox. */
export type SandboxState = {
  paths: Paths;
  store: ObjectStore;
  journal: Journal;
  tokenService: TokenService;
  token: string;
  now: () => number;
  latencyMs: number;
  date: (() => string) | null; // null leaves the header to node
  limit: Limiter | null;
  pickFault: FaultPicker | null;
};

/** Answers a request for the journal; returns false for any other request. */
export function showJournal({ journal }: SandboxState, response: ServerResponse): boolean {
  const { url, method } = response.req;
  if (!journal.record || url !== journalPath || method !== 'GET') return false;
  answerJson(response, 200, journalPage(journal));
  return true;
}

/** Answers one request: a delete of the API, the token endpoint, or 404 and 405 for everything else. */
export function serve(state: SandboxState, response: ServerResponse): void {
  const { url, method, headers } = response.req;
  if (state.date !== null) response.setHeader('date', state.date());
  const resource = state.paths.resourceOf(url!);
  if (resource === null) serveOther(state, response);
  else if (method !== 'DELETE') refuse(state, response, 405, 'method_not_allowed', { allow: 'DELETE' });
  else if (!state.tokenService.tokens.accepts(tokenIn(headers, definitionOf(resource))))
    refuse(state, response, 401, 'invalid_token', challenge);
  else serveDelete(state, response, resource);
}

/** The token of a request as `Bearer TOKEN`; undefined if a fixed header is missing, or the token is in another place. */
function tokenIn(sent: IncomingHttpHeaders, { auth, headers }: RequestForm): string | undefined {
  if (Object.entries(headers).some(([name, value]) => sent[name] !== value)) return undefined;
  const value = String(sent[auth.header] ?? '');
  const start = auth.scheme === '' ? '' : `${auth.scheme} `;
  return value.startsWith(start) ? `Bearer ${value.slice(start.length)}` : undefined;
}

/**
 * Writes a token to a file that only its owner can read. Throws USAGE for a file with other content, because it may be the token of a real API.
 * Repeating it changes nothing.
 */
export async function writeToken(path: string, token: string): Promise<void> {
  try {
    await writeFile(path, `${token}\n`, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') {
      const { words, next } = explainFileError(error);
      throw new ExpungeError('USAGE', `${path}: cannot write the token: ${words}`, { cause: error, next });
    }
    if ((await readFile(path, 'utf8')).trim() !== token) {
      throw new ExpungeError('USAGE', `${path}: exists and holds another token`, { next: 'name a file that is free' });
    }
    await chmod(path, 0o600);
  }
}

const challenge = { 'www-authenticate': 'Bearer error="invalid_token"' };

function serveDelete(state: SandboxState, response: ServerResponse, resource: Resource): void {
  const id = state.paths.idIn(response.req.url!, resource);
  if (id === null) refuse(state, response, 404, 'not_found');
  else serveId(state, response, resource, id);
}

function serveId(state: SandboxState, response: ServerResponse, resource: Resource, id: string): void {
  const fault = state.limit?.take() === false ? state.limit.refusal() : (state.pickFault?.(resource, id) ?? null);
  if (state.limit !== null) addRateHeaders(state.limit, response);
  if (fault === null) answerDelete(state, response, resource, id);
  else playFault(state, response, resource, id, fault);
}

function addRateHeaders(limit: Limiter, response: ServerResponse): void {
  const headers = limit.headers();
  if (headers !== null) response.setHeaders(new Map(Object.entries(headers)));
}

function answerDelete(state: SandboxState, response: ServerResponse, resource: Resource, id: string): void {
  const existed = execute(state, resource, id);
  const { success, absent } = definitionOf(resource);
  const status = existed ? success[0]! : (absent[0] ?? 404);
  noteDeleteAnswer(state.journal, response, status, resource, id);
  if (existed) answerDeleted(response, status);
  else answerJson(response, status, { error: 'not_found' });
}

function playFault(state: SandboxState, response: ServerResponse, resource: Resource, id: string, fault: Fault): void {
  if (fault.executes) execute(state, resource, id);
  if (fault.status > 0) noteDeleteAnswer(state.journal, response, fault.status, resource, id);
  answerFault(fault, response, state.now());
}

/** Deletes an object, and returns whether it existed. */
function execute({ store, journal }: SandboxState, resource: Resource, id: string): boolean {
  const existed = store.get(resource)!.delete(id);
  if (existed) noteExecuted(journal, resource, id);
  return existed;
}

function serveOther(state: SandboxState, response: ServerResponse): void {
  const { url, method } = response.req;
  if (url !== tokenPath) refuse(state, response, 404, 'not_found');
  else if (method !== 'POST') refuse(state, response, 405, 'method_not_allowed', { allow: 'POST' });
  // This rejects if the form is too long or the connection breaks.
  else serveToken(state, response).catch(() => response.destroy());
}

async function serveToken({ tokenService, journal }: SandboxState, response: ServerResponse): Promise<void> {
  const { status, body, headers } = await answerTokenRequest(response.req, tokenService);
  if (status === 200) journal.counts.tokens += 1;
  noteStatus(journal, response, status);
  answerJson(response, status, body, headers);
}

function refuse(
  { journal }: SandboxState,
  response: ServerResponse,
  status: number,
  error: string,
  headers: Record<string, string> = {},
): void {
  noteStatus(journal, response, status);
  answerJson(response, status, { error }, headers);
}
