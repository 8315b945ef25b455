import { readFileSync } from 'node:fs';
import { Client, type Dispatcher } from 'undici';
import { benchToken } from './target.ts';

// The floor: the same requests from a bare undici dispatch loop, 64 at once, that remembers nothing and retries nothing.
// Usage: node bare-dispatch.ts CSV BASE_URL; prints the seconds it took.

const [csv, baseUrl] = process.argv.slice(2) as [string, string];
const paths = readFileSync(csv, 'utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((id) => `/v2/annotations/${id}`);
const headers = ['authorization', `Bearer ${benchToken}`];
let [next, done] = [0, 0];

const startedAt = performance.now();
await new Promise<void>((resolve) => {
  const send = (client: Client) => {
    if (next === paths.length) return;
    client.dispatch({ path: paths[next++]!, method: 'DELETE', headers }, handlerOf(client));
  };
  const handlerOf = (client: Client): Dispatcher.DispatchHandler => ({
    onRequestStart() {},
    onResponseStart() {},
    onResponseData() {},
    onResponseEnd() {
      done++;
      if (done === paths.length) resolve();
      else send(client);
    },
    onResponseError(_controller, error) {
      throw error;
    },
  });
  for (let lane = 0; lane < 64; lane++) send(new Client(baseUrl, { allowH2: false }));
});
process.stdout.write(`${(performance.now() - startedAt) / 1_000}\n`);
process.exit(0);
