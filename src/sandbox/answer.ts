import { randomUUID } from 'node:crypto';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { pathParts, type Resource, resources } from '../model/resource.ts';
import { acceptedStatus } from '../model/status.ts';
import { type Fault, formatRetryAfter } from './fault-kinds.ts';

/** Answers that an object was deleted. A 204 without body is the fast path. */
export function answerDeleted(response: ServerResponse, status: number): void {
  if (status === 204) response.writeHead(204).end();
  else answerJson(response, status, { status: status === acceptedStatus ? 'accepted' : 'deleted' });
}

/** Answers with a status, a JSON body and a request id, as most APIs do if there is no success. */
export function answerJson(
  response: ServerResponse,
  status: number,
  body: Record<string, unknown>,
  headers: OutgoingHttpHeaders = {},
): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    ...headers,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'x-request-id': randomUUID(),
  });
  response.end(text);
}

/** Answers a request with a fault. */
export function answerFault(fault: Fault, response: ServerResponse, nowMs: number): void {
  if (fault.ending === 'status') answerStatus(fault, response, nowMs);
  if (fault.ending === 'reset') response.req.socket.resetAndDestroy();
  if (fault.ending === 'html') answerHtml(response);
  if (fault.ending === 'stray-body') answerStrayBody(response);
  // A hang lasts until the client gives up or the sandbox closes.
}

function answerStatus({ status, retryAfter }: Fault, response: ServerResponse, nowMs: number): void {
  const headers: OutgoingHttpHeaders = {};
  // A client must not follow this redirect. If it does, it requests a path that no object has.
  if (status >= 300 && status < 400) headers.location = `/redirected${response.req.url}`;
  if (status === 401) headers['www-authenticate'] = 'Bearer error="invalid_token"';
  if (retryAfter) headers['retry-after'] = formatRetryAfter(retryAfter.form, retryAfter.seconds, nowMs);
  answerJson(response, status, { error: `sandbox_${status}` }, headers);
}

function answerHtml(response: ServerResponse): void {
  const page = '<!doctype html><title>Sign in</title><p>Please sign in to continue.\n';
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'content-length': page.length });
  response.end(page);
}

/** Answers 204 with a body. node:http drops the body of a 204, so the bytes are written to the socket directly; the connection stays open. */
function answerStrayBody(response: ServerResponse): void {
  response.writeHead(204, { 'content-length': 5 });
  response.end();
  response.req.socket.write('stray');
}

/** The paths of the resources. This works on strings: it runs for every request, and a URL parser would cost more than everything else. */
export type Paths = {
  resourceOf(target: string): Resource | null;
  idIn(target: string, resource: Resource): string | null; // null if no object can have this path
};

export function createPaths(basePath: string): Paths {
  const all = resources.map((resource) => {
    const [before, after] = pathParts(resource);
    return { resource, before: basePath + before, after, length: basePath.length + before.length + after.length };
  });
  all.sort((a, b) => b.length - a.length); // of /v1/exports/{id} and /v1/exports/{id}/file, the second fits /v1/exports/7/file
  return {
    resourceOf(target) {
      for (const { resource, before, after, length } of all)
        if (target.length >= length && target.startsWith(before) && target.endsWith(after)) return resource;
      return null;
    },
    idIn(target, resource) {
      const { before, after } = all.find((each) => each.resource === resource)!;
      return decodeId(target.slice(before.length, target.length - after.length));
    },
  };
}

/** The id of a path segment, or null: a slash makes another path, and the API accepts no query. */
function decodeId(segment: string): string | null {
  if (segment === '' || segment.includes('/') || segment.includes('?')) return null;
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
