import type { ServerResponse } from 'node:http';
import type { Resource } from '../ledger/outcome.ts';
import { answerDeleted, answerFault, answerJson } from './answer.ts';
import type { Fault } from './fault-kinds.ts';
import type { FaultPicker } from './faults.ts';
import { type Journal, noteDeleteAnswer, noteExecuted, noteStatus } from './journal.ts';
import type { ObjectStore } from './objects.ts';
import type { Paths } from './paths.ts';
import { type Client, checkTokenRequest } from './token-endpoint.ts';
import type { Tokens } from './tokens.ts';

/** Where the tokens are issued: at the root, whatever the base path, because an authorization server is another service. */
export const tokenPath = '/oauth/token';

/** What a request is answered from. */
export type Service = {
  paths: Paths;
  store: ObjectStore;
  journal: Journal;
  tokens: Tokens;
  token: string;
  client: Client;
  tokenLifeSeconds: number;
  now: () => number;
  latencyMs: number;
  pickFault: FaultPicker | null;
};

/** Answers one request: a delete of the API, the token endpoint, or 404 and 405 for all else. */
export function serve(service: Service, response: ServerResponse): void {
  const { url, method, headers } = response.req;
  const resource = service.paths.resourceOf(url!);
  if (resource === null) serveOther(service, response);
  else if (method !== 'DELETE') refuse(service, response, 405, 'method_not_allowed', { allow: 'DELETE' });
  else if (!service.tokens.accepts(headers.authorization)) refuse(service, response, 401, 'invalid_token', challenge);
  else serveDelete(service, response, resource);
}

const challenge = { 'www-authenticate': 'Bearer error="invalid_token"' };

function serveDelete(service: Service, response: ServerResponse, resource: Resource): void {
  const id = service.paths.idIn(response.req.url!, resource);
  const fault = id === null || service.pickFault === null ? null : service.pickFault(resource, id);
  if (id === null) refuse(service, response, 404, 'not_found');
  else if (fault === null) answerDelete(service, response, resource, id);
  else playFault(service, response, resource, id, fault);
}

function answerDelete(service: Service, response: ServerResponse, resource: Resource, id: string): void {
  const existed = execute(service, resource, id);
  noteDeleteAnswer(service.journal, existed ? 204 : 404, resource, id);
  if (existed) answerDeleted(response);
  else answerJson(response, 404, { error: 'not_found' });
}

function playFault(service: Service, response: ServerResponse, resource: Resource, id: string, fault: Fault): void {
  if (fault.executes) execute(service, resource, id);
  if (fault.status > 0) noteDeleteAnswer(service.journal, fault.status, resource, id);
  answerFault(fault, response, service.now());
}

/** Whether the object existed. It doesn't any more. */
function execute({ store, journal }: Service, resource: Resource, id: string): boolean {
  const existed = store[resource].delete(id);
  if (existed) noteExecuted(journal, resource, id);
  return existed;
}

function serveOther(service: Service, response: ServerResponse): void {
  const { url, method } = response.req;
  if (url !== tokenPath) refuse(service, response, 404, 'not_found');
  else if (method !== 'POST') refuse(service, response, 405, 'method_not_allowed', { allow: 'POST' });
  // Rejects when the form is too long or the connection broke while it came.
  else serveToken(service, response).catch(() => response.destroy());
}

async function serveToken(service: Service, response: ServerResponse): Promise<void> {
  const { client, journal, tokenLifeSeconds, tokens } = service;
  const refusal = await checkTokenRequest(response.req, client);
  if (refusal) return refuse(service, response, refusal.status, refusal.error, refusal.headers);
  journal.counts.tokens += 1;
  noteStatus(journal, 200);
  const issued = { access_token: tokens.issue(), token_type: 'Bearer', expires_in: tokenLifeSeconds };
  answerJson(response, 200, issued, { 'cache-control': 'no-store' });
}

function refuse(
  { journal }: Service,
  response: ServerResponse,
  status: number,
  error: string,
  headers: Record<string, string> = {},
): void {
  noteStatus(journal, status);
  answerJson(response, status, { error }, headers);
}
