import { connectionWords } from '../system-words.ts';
import type { Answer } from './answer.ts';

const longest = 200;
const requestIdHeaders = ['x-request-id', 'x-correlation-id', 'x-amzn-requestid', 'cf-ray'];

/**
 * What an error answer says, for people: its request id and at most 200 printable characters of its body. Control characters
 * are dropped, and whatever looks like a bearer token is masked: servers echo what they were sent.
 */
export function excerptOf(answer: Answer): string {
  if (answer.kind !== 'status') return connectionWords(answer.why);
  const name = requestIdHeaders.find((header) => answer.headers[header] !== undefined);
  const requestId = name === undefined ? '' : `[${String(answer.headers[name])}] `;
  return clean(requestId + answer.body, answer.authorization).slice(0, longest);
}

function clean(text: string, authorization: string): string {
  const token = authorization.replace(/^Bearer /, '');
  const masked = token === '' ? text : text.replaceAll(token, '***');
  return masked
    .replace(/bearer\s+\S+/gi, 'Bearer ***')
    .replace(/[\p{C}\s]+/gu, ' ')
    .trim();
}
