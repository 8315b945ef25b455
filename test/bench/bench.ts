import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import { resolveRedis } from '../../src/redis/private/open.ts';
import { stopPrivateRedis } from '../../src/redis/private/stop.ts';
import { writeIds } from './make-ids.ts';
import { type Measured, measure } from './measure.ts';
import { peersOf } from './peers.ts';
import { writeResults } from './results.ts';
import { type Cell, cellTable } from './table.ts';
import { startTarget } from './target.ts';

// CPU seconds and wall clock side by side with peers, in turn: `npm run bench`. Quote the ratios; absolute figures belong to the machine.

const { values } = parseArgs({
  options: {
    ids: { type: 'string', default: '100000' },
    'ids-behind-latency': { type: 'string', default: '5000' },
    latency: { type: 'string', default: '0,50' },
    tls: { type: 'string', default: 'no,yes' },
    rounds: { type: 'string', default: '5' },
    write: { type: 'boolean', default: false }, // into RESULTS.md
    only: { type: 'string', default: '' }, // words of the peers' names, separated by commas
  },
});
const numbers = (text: string) => text.split(',').map(Number);
const words = values.only.split(',');
const folder = mkdtempSync(join(tmpdir(), 'expunge-bench-'));
const stateDir = join(folder, 'state');
const say = (line: string) => process.stdout.write(`${line}\n`);
const address = await resolveRedis({ stateDir, allowPlaintextRedis: false }, process.env, say);
const redis = new Redis({ ...address.options, replyMapping: 'legacy' });
try {
  const cells: Cell[] = [];
  for (const latencyMs of numbers(values.latency)) {
    for (const tls of values.tls.split(',')) cells.push(await measureCell(latencyMs, tls === 'yes'));
  }
  if (values.write) writeResults(cells, Number(values.rounds));
} finally {
  redis.disconnect();
  if (address.kind === 'private') await stopPrivateRedis(stateDir);
  rmSync(folder, { recursive: true, force: true });
}

/** All peers against one server, round by round. */
async function measureCell(latencyMs: number, tls: boolean): Promise<Cell> {
  const ids = Number(latencyMs === 0 ? values.ids : values['ids-behind-latency']);
  const csv = join(folder, 'ids.csv');
  await writeIds(csv, ids);
  const target = await startTarget(folder, latencyMs, tls);
  const all = peersOf({ csv, folder, stateDir, redis: address.options }, target);
  const peers = all.filter(({ name }) => words.some((word) => name.includes(word)));
  const measured = new Map<string, Measured[]>(peers.map(({ name }) => [name, []]));
  for (let round = 1; round <= Number(values.rounds); round++) {
    for (const peer of peers) measured.get(peer.name)!.push(await measure(peer, target, redis, ids));
    say(`round ${round} of ${values.rounds}`);
  }
  target.stop();
  const cell = { latencyMs, tls, ids, measured };
  say(cellTable(cell));
  return cell;
}
