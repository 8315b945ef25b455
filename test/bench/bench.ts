import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { resolveRedis } from '../../src/redis/private/open.ts';
import { stopPrivateRedis } from '../../src/redis/private/stop.ts';
import { writeIds } from './make-ids.ts';
import { benchToken, startTarget } from './target.ts';

// Side by side with peers, in one run: npm run bench [-- IDS [ROUNDS]]. Quote the ratios; absolute figures belong to the machine.

const ids = Number(process.argv[2] ?? 1_000_000);
const rounds = Number(process.argv[3] ?? 3);
const here = import.meta.dirname;
const folder = mkdtempSync(join(tmpdir(), 'expunge-bench-'));
const csv = join(folder, 'ids.csv');
const stateDir = join(folder, 'state');
const say = (line: string) => process.stdout.write(`${line}\n`);

await writeIds(csv, ids);
const target = await startTarget(csv);
const address = await resolveRedis({ stateDir, allowPlaintextRedis: false }, process.env, say);
const redis = new Redis({ ...address.options, replyMapping: 'legacy' });
try {
  say(
    `${ids} UUIDs · ${target.name} answering 204 · ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB · Node ${process.version}`,
  );
  const whole = [];
  for (let round = 1; round <= rounds; round++) whole.push(await oneRound(round));
  say(`median ratio to bare dispatch: ${median(whole.map((figures) => figures.ratio)).toFixed(3)}`);
  say(`median wall, CSV to report: ${median(whole.map((figures) => figures.wall)).toFixed(1)} s`);
  await target.refill();
  compareWithCurl();
  await target.refill();
  compareWithOneJobPerId();
} finally {
  target.stop();
  redis.disconnect();
  if (address.kind === 'private') await stopPrivateRedis(stateDir);
  rmSync(folder, { recursive: true, force: true });
}

async function oneRound(round: number) {
  await target.refill();
  const bare = ids / Number(node(['bare-dispatch.ts', csv, target.url]).stdout);
  await target.refill();
  const ours = await runExpunge();
  const ratio = ours.perSecond / bare;
  say(
    `round ${round}: bare ${bare.toFixed(0)}/s · expunge deletes ${ours.perSecond.toFixed(0)}/s (${ratio.toFixed(3)}) · wall ${ours.wall.toFixed(1)} s · ` +
      `peak RSS ${ours.rssMb} MB · Redis ${ours.bytesPerId.toFixed(1)} B/id at the peak`,
  );
  return { ...ours, ratio };
}

async function runExpunge() {
  const before = await usedMemory();
  let peak = 0;
  const sampler = setInterval(async () => {
    peak = Math.max(peak, await usedMemory());
  }, 50);
  const startedAt = performance.now();
  const result = await run();
  clearInterval(sampler);
  const wall = (performance.now() - startedAt) / 1_000;
  const summary = JSON.parse(result.stdout.trimEnd().split('\n').at(-1)!);
  if (summary.deleted !== ids) throw new Error(`expected ${ids} deleted, got ${JSON.stringify(summary)}`);
  return { perSecond: ids / summary.seconds, wall, bytesPerId: (peak - before) / ids, rssMb: result.rssMb };
}

async function run() {
  const flags = ['--resource', 'annotations', '--base-url', target.url, '--yes', '--json', '--state-dir', stateDir];
  const child = spawn(process.execPath, [join(here, '../../src/bin.js'), 'run', csv, ...flags], {
    env: { ...process.env, EXPUNGE_TOKEN: benchToken },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let stdout = '';
  let rssKb = 0;
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  const sampler = setInterval(() => {
    rssKb = Math.max(rssKb, peakRssKb(child.pid!));
  }, 100);
  await new Promise((resolve) => child.once('close', resolve));
  clearInterval(sampler);
  return { stdout, rssMb: Math.round(rssKb / 1024) };
}

/** VmHWM: the most memory the process ever had. 0 where there is no /proc. */
function peakRssKb(pid: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

async function usedMemory(): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1]);
}

function compareWithCurl(): void {
  const config = join(folder, 'curl.conf');
  const urls = readFileSync(csv, 'utf8').trimEnd().split('\n').slice(1);
  writeFileSync(
    config,
    urls
      .map(
        (id) => `url = "${target.url}/v2/annotations/${id}"\noutput = "/dev/null"\noauth2-bearer = "${benchToken}"\n`,
      )
      .join(''),
  );
  const startedAt = performance.now();
  const curl = spawnSync('curl', ['-sS', '--parallel', '--parallel-max', '64', '-X', 'DELETE', '-K', config], {
    stdio: 'ignore',
  });
  if (curl.status === 0)
    say(`curl --parallel on the same URLs: ${((performance.now() - startedAt) / 1_000).toFixed(1)} s wall`);
  else say('curl --parallel: not measured (curl is missing or failed)');
}

function compareWithOneJobPerId(): void {
  const few = join(folder, 'few.csv');
  const count = Math.min(ids, 100_000);
  writeFileSync(
    few,
    readFileSync(csv, 'utf8')
      .split('\n')
      .slice(0, count + 1)
      .join('\n'),
  );
  const seconds = Number(node(['one-job-per-id.ts', few, target.url, JSON.stringify(address.options)]).stdout);
  say(`one BullMQ job per id: ${(count / seconds).toFixed(0)} ids/s from list to end, over ${count} ids`);
}

function node([script, ...args]: [string, ...string[]]) {
  return spawnSync(process.execPath, [join(here, script), ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

function median(figures: number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)]!;
}
