import { type Exposition, readExposition } from './exposition.ts';
import { type Running, until } from './processes.ts';

/** An answer of a worker's HTTP port, and how long it took. */
export type ProbeAnswer = { status: number; text: string; contentType: string | null; ms: number };

/** What a worker answers over HTTP. */
export type Probes = {
  url: string;
  get(path: string): Promise<ProbeAnswer>;
  scrape(): Promise<Exposition>;
  /** `/readyz`, parsed. */
  readiness(): Promise<{ status: number; ready: boolean; checks: Record<string, { ok: boolean; words: string }> }>;
};

/** Give the worker `--http 0`, which takes a free port; its log says which. */
export async function openProbes(worker: Running): Promise<Probes> {
  const url = await until('the worker listens on HTTP', () => /"http":"([^"]+)"/.exec(worker.stderr)?.[1]);
  const get = async (path: string): Promise<ProbeAnswer> => {
    const at = performance.now();
    const answer = await fetch(url + path, { headers: { connection: 'close' } });
    const text = await answer.text();
    const contentType = answer.headers.get('content-type');
    return { status: answer.status, text, contentType, ms: performance.now() - at };
  };
  return {
    url,
    get,
    scrape: async () => readExposition((await get('/metrics')).text),
    readiness: async () => {
      const { status, text } = await get('/readyz');
      return { status, ...JSON.parse(text) };
    },
  };
}
