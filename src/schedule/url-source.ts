import type { ListSource } from '../config/list-source.ts';
import { ExpungeError } from '../errors.ts';
import type { InputFile } from '../input/open-inputs.ts';
import { readCertificates } from '../named-file.ts';
import { connectionWords } from '../system-words.ts';
import { openDispatcher } from '../token/token-request.ts';
import type { Surroundings } from './open-source.ts';

/**
 * The list at a URL. Reading it throws USAGE for every answer but 200, one that is cut off, and one that takes too long; redirects are not
 * followed. The URL's query is never shown, and no token of ours is sent.
 */
export function urlFile(
  name: string,
  { url, caFile, timeoutMs }: ListSource & { kind: 'url' },
  { proxy, stop }: Surroundings,
): InputFile {
  const { origin, pathname } = new URL(url);
  const fail = (trouble: string) => new ExpungeError('USAGE', `source ${name}: ${origin}${pathname} ${trouble}`);
  return {
    ...{ name: `${origin}${pathname}`, isStdin: false, isPipe: false },
    open: () => download(url, { caFile, proxy, timeoutMs, stop, fail }),
  };
}

type Download = {
  caFile: string | null;
  proxy: string | null;
  timeoutMs: number;
  stop: AbortSignal;
  fail: (trouble: string) => Error;
};

async function* download(url: string, { caFile, proxy, timeoutMs, stop, fail }: Download): AsyncGenerator<Buffer> {
  const { origin, pathname, search } = new URL(url);
  const ca = caFile === null ? null : readCertificates('caFile', caFile);
  const dispatcher = openDispatcher(origin, { ca, proxy });
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  const signal = AbortSignal.any([stop, late.signal]);
  try {
    const timeouts = { headersTimeout: timeoutMs, bodyTimeout: timeoutMs };
    const answer = await dispatcher.request({ origin, path: pathname + search, method: 'GET', signal, ...timeouts });
    if (answer.statusCode !== 200) throw fail(`answered ${answer.statusCode}; only 200 is a list`);
    const { 'content-length': length, 'transfer-encoding': encoding } = answer.headers;
    if (length === undefined && encoding === undefined)
      throw fail('does not say how long its answer is, so it may be cut off');
    yield* answer.body as AsyncIterable<Buffer>;
  } catch (error) {
    if (error instanceof ExpungeError) throw error;
    if (late.signal.aborted) throw fail(`took longer than ${timeoutMs / 1_000} s`);
    throw fail(`gave no whole list (${stop.aborted ? 'stopped' : connectionWords(error)})`);
  } finally {
    clearTimeout(timer);
    await dispatcher.destroy();
  }
}
