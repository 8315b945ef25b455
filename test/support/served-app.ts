import type { Hono } from 'hono';
import { httpPart } from '../../src/worker/http/http-part.ts';
import type { AtEnd } from './harness.ts';

/** Serves an app as a worker serves its API, on a free port of this machine; returns its URL. */
export async function serveApp(atEnd: AtEnd, app: Hono, stalledMs: number): Promise<string> {
  let url = '';
  const onListening = (address: string) => {
    url = address;
  };
  const part = httpPart({ host: '127.0.0.1', port: 0 }, app, { flag: '--http', onListening, stalledMs });
  await part.start!();
  atEnd(async () => void (await part.drain!()));
  return url;
}
