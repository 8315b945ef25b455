import { readFileSync } from 'node:fs';
import { type ConnectionOptions, Queue, Worker } from 'bullmq';
import { Pool } from 'undici';
import { benchToken } from './target.ts';

// A peer: one BullMQ job per id, the way a queue is used when nobody thinks about it. Adds all jobs, then works them off with 64 at once.
// Usage: node one-job-per-id.ts CSV BASE_URL REDIS_PORT; prints the seconds it took.

const [csv, baseUrl, redis] = process.argv.slice(2) as [string, string, string];
const ids = readFileSync(csv, 'utf8').trimEnd().split('\n').slice(1);
const connection: ConnectionOptions = JSON.parse(redis);
const queue = new Queue('bench-one-job-per-id', { connection });
const headers = { authorization: `Bearer ${benchToken}` };
const pool = new Pool(baseUrl, { connections: 64, allowH2: false });

const startedAt = performance.now();
for (let from = 0; from < ids.length; from += 1_000) {
  const jobs = ids.slice(from, from + 1_000).map((id) => ({ name: 'delete', data: { id } }));
  await queue.addBulk(jobs.map((job) => ({ ...job, opts: { removeOnComplete: true } })));
}
let done = 0;
await new Promise<void>((resolve) => {
  new Worker(
    queue.name,
    async (job) => {
      const answer = await pool.request({ path: `/v2/annotations/${job.data.id}`, method: 'DELETE', headers });
      await answer.body.dump();
      if (++done === ids.length) resolve();
    },
    { connection, concurrency: 64 },
  );
});
process.stdout.write(`${(performance.now() - startedAt) / 1_000}\n`);
await queue.obliterate({ force: true });
process.exit(0);
