import type { ProblemDocument } from '../api/problem.ts';

// Calls of the API. The session is a cookie that no script can read.

/** What a page shows of a problem document. */
type ProblemWords = Partial<Pick<ProblemDocument, 'title' | 'detail' | 'next'>>;

/** Why the server did not do what it was asked, in its words. */
class Refusal extends Error {
  readonly status: number;
  readonly next: string;

  constructor(status: number, { title, detail, next }: ProblemWords) {
    super(detail ?? title ?? `the server answered ${status}`);
    this.status = status;
    this.next = next ?? '';
  }
}

const base = '/api/v1';

export function get<T>(path: string): Promise<T> {
  return call(path, { method: 'GET' });
}

export function post<T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
  const json = { 'content-type': 'application/json', ...headers };
  return call(path, { method: 'POST', headers: json, body: JSON.stringify(body) });
}

/** Sends a list as it is. */
export function postFile<T>(path: string, file: Blob): Promise<T> {
  return call(path, { method: 'POST', headers: { 'content-type': 'text/csv' }, body: file });
}

export function address(path: string) {
  return base + path;
}

async function call<T>(path: string, request: RequestInit): Promise<T> {
  const response = await fetch(address(path), { ...request, redirect: 'error' }).catch(() => {
    throw new Refusal(0, { detail: 'The server did not answer.', next: 'try again' });
  });
  if (response.status === 401) {
    location.assign('/login');
    return new Promise(() => {}); // this page is left
  }
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, content);
  return content;
}

/** Whether the server has no such thing. */
export function isMissing(error: unknown) {
  return error instanceof Refusal && error.status === 404;
}

/** What went wrong, for people. */
export function wordsOf(error: unknown) {
  if (!(error instanceof Error)) return String(error);
  const next = error instanceof Refusal && error.next ? ` → ${error.next}` : '';
  return `${error.message}${next}`;
}

export function problemText({ title, detail, next }: ProblemWords) {
  return `${detail ?? title ?? 'The server has a problem.'}${next ? ` → ${next}` : ''}`;
}
