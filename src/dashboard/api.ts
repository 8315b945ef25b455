import { withoutFlags } from './format.ts';
import { judgeAnswer, type ProblemWords, type Trouble } from './trouble.ts';

// Calls of the API. The session is a cookie that no script can read.

/** Why the server refused a request, in its words. */
class Refusal extends Error {
  readonly status: number;
  readonly next: string;
  readonly trouble: Trouble;

  constructor(status: number, words: ProblemWords) {
    const trouble = judgeAnswer({ status, ...words });
    super(words.detail ?? words.title ?? `${trouble.title}.`);
    this.status = status;
    this.next = words.next ?? '';
    this.trouble = trouble;
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

/** Sends a list unchanged. */
export function postFile<T>(path: string, file: Blob, type: string): Promise<T> {
  return call(path, { method: 'POST', headers: { 'content-type': type }, body: file });
}

export function address(path: string) {
  return base + path;
}

async function call<T>(path: string, request: RequestInit): Promise<T> {
  const response = await fetch(address(path), { ...request, redirect: 'error' }).catch(() => {
    throw new Refusal(0, { detail: 'The server did not answer.', next: 'try again' });
  });
  if (response.status === 401 && request.method === 'GET') return leaveForLogin();
  if (response.status === 401) throw new Refusal(401, sessionEnded); // so that what was typed stays on the page
  const content = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refusal(response.status, content);
  return content;
}

const sessionEnded = {
  detail: 'Your session has ended, and nothing was done.',
  next: 'sign in again in another tab, then repeat it here',
};

let isLeaving = false;

/** Leaves for the login, which leads back to the same page. Several requests may be refused at once; the page is left only once. */
function leaveForLogin(): Promise<never> {
  const { pathname, search } = location;
  if (!isLeaving) {
    isLeaving = true;
    addEventListener('pagehide', () => (isLeaving = false), { once: true }); // the browser's Back may show this page again
    location.assign(`/login?${new URLSearchParams({ problem: 'session', to: pathname + search })}`);
  }
  return new Promise(() => {}); // never settles: the page is being left
}

/** Whether the error says that there is no such thing on the server. */
export function isMissing(error: unknown) {
  return error instanceof Refusal && error.status === 404;
}

/** The error in words for people. */
export function describeError(error: unknown) {
  if (!(error instanceof Error)) return String(error);
  const next = error instanceof Refusal && error.next ? ` → ${asOnPage(error.next)}` : '';
  return `${asOnPage(error.message)}${next}`;
}

/** The text of a server with the names of flags and request fields as a page shows them. A command to type stays as it is. */
function asOnPage(text: string) {
  const plain = text.replace(/^(body|query)\.[a-z_]+: /, '');
  return /\bexpunge [a-z]/.test(plain) ? plain : withoutFlags(plain);
}

/** The reason why something cannot be shown. */
export function toTrouble(error: unknown): Trouble {
  return error instanceof Refusal ? error.trouble : judgeAnswer({ status: 500, detail: describeError(error) });
}
