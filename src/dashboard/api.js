// Calls of the API. The session is a cookie that no script can read.

/** Why the server did not do what it was asked, in its words. */
class Refusal extends Error {
  /** @param {number} status @param {{ title?: string, detail?: string, next?: string }} problem */
  constructor(status, { title, detail, next }) {
    super(detail ?? title ?? `the server answered ${status}`);
    this.status = status;
    this.next = next ?? '';
  }
}

const base = '/api/v1';

/** @param {string} path @returns {Promise<any>} */
export function get(path) {
  return call(path, { method: 'GET' });
}

/** @param {string} path @param {unknown} body @param {Record<string, string>} [headers] @returns {Promise<any>} */
export function post(path, body, headers = {}) {
  const json = { 'content-type': 'application/json', ...headers };
  return call(path, { method: 'POST', headers: json, body: JSON.stringify(body) });
}

/** Sends a list as it is. @param {string} path @param {Blob} file @returns {Promise<any>} */
export function postFile(path, file) {
  return call(path, { method: 'POST', headers: { 'content-type': 'text/csv' }, body: file });
}

/** @param {string} path */
export function address(path) {
  return base + path;
}

/** @param {string} path @param {RequestInit} request */
async function call(path, request) {
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

/** Whether the server has no such thing. @param {unknown} error */
export function isMissing(error) {
  return error instanceof Refusal && error.status === 404;
}

/** What went wrong, for people. @param {unknown} error */
export function wordsOf(error) {
  if (!(error instanceof Error)) return String(error);
  const next = error instanceof Refusal && error.next ? ` → ${error.next}` : '';
  return `${error.message}${next}`;
}

/** @param {{ title?: string, detail?: string, next?: string }} problem */
export function problemText({ title, detail, next }) {
  return `${detail ?? title ?? 'The server has a problem.'}${next ? ` → ${next}` : ''}`;
}
