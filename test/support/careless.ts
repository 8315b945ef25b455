import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Careless } from './action-walk-scene.ts';
import type { Forgotten } from './processes.ts';

// Loaded before expunge (`node --import`), it takes out of its code what CARELESS names. What a test shows of a process without a safety, and
// not of the real one, is what the safety is for. It throws where the code no longer has what is to be taken out.

type Cut = { file: string; from: string; to: string };

const writeEach = `keys.audit(id), ...whole)) === 1) {
    for (const [field, value] of Object.entries(producerFields(plan))) await redis.hset(keys.run(id), field, value);
    return;
  }`;

// Lua: as if nobody had written a mark into the open cells of the chunk that is claimed.
const cellsWithoutMarks = `local cells = string.sub(chunk[1], 1, \${headerBytes})
do \${cellConstants}
for at = \${headerBytes} + 1, #chunk[1], 2 do
  local high, low = string.byte(chunk[1], at, at + 1)
  local cell = high * 256 + low
  if cell < settledFrom and math.floor(cell / markStep) % 2 == 1 then cell = cell - markStep end
  cells = cells .. string.char(math.floor(cell / 256), cell % 256)
end
end
redis.call('SETRANGE', KEYS[4], 0, cells)`;

const checkServer = 'local process, history, doubt = checkServer(';
const trustServer = `local me, replaced = thisProcess()
redis.call('HSET', KEYS[1], 'server', me, 'serverHistory', replaced)
redis.call('HDEL', KEYS[1], 'doubtSince')
${checkServer}`;

const cuts: Record<Careless | Forgotten, readonly Cut[]> = {
  // Whoever claims a chunk takes back the marks that its last holder left.
  marks: [{ file: 'ledger/chunks.lua.ts', from: 'local cells = chunk[1]', to: cellsWithoutMarks }],
  // Whichever Redis answers passes for the one that always kept the run.
  doubt: [
    { file: 'ledger/chunks.lua.ts', from: checkServer, to: trustServer },
    { file: 'ledger/ledger.ts', from: 'async stillHolds(run, { server }) {', to: '$& return true;' },
  ],
  // Redis passes for a near one, however far it is.
  distance: [{ file: 'redis/distance.ts', from: 'this.#farMs = Math.min(', to: 'this.#farMs = 0 * Math.min(' }],
  // No safety: they look a fifth of the time later, and wait as long for what a dead one held.
  patience: [
    { file: 'queue/queue.ts', from: 'lockDuration = 10_000', to: 'lockDuration = 2_000' },
    { file: 'queue/queue.ts', from: 'stalledEveryMs = 2_000', to: 'stalledEveryMs = 400' },
    { file: 'redis/lease.ts', from: 'leaseMs = 15_000', to: 'leaseMs = 3_000' },
    { file: 'redis/lease.ts', from: 'renewEveryMs = 4_000', to: 'renewEveryMs = 800' },
    { file: 'worker/recoverer.ts', from: 'leaseMs = 2_500', to: 'leaseMs = 500' },
    { file: 'worker/deliverer.ts', from: 'checkEveryMs = 3_000', to: 'checkEveryMs = 600' },
    { file: 'worker/supervisor.ts', from: 'firstMs: 1_000', to: 'firstMs: 200' },
    { file: 'worker/known-actions.ts', from: 'lookEveryMs = 1_000', to: 'lookEveryMs = 200' },
    { file: 'worker/known-actions.ts', from: 'lookAtRunsEveryMs = 5_000', to: 'lookAtRunsEveryMs = 1_000' },
    { file: 'commands/processes/worker.ts', from: 'recoverEveryMs = 3_000', to: 'recoverEveryMs = 600' },
  ],
  // No action is refused because the run has moved since it was shown.
  comparison: [
    { file: 'ledger/steer.lua.ts', from: "local isStale = ARGV[9] ~= ''", to: 'local isStale = false' },
    { file: 'operations/steer-run.ts', from: 'if (found.revision !== seen &&', to: 'if (false &&' },
  ],
  // No process writes an action again that Redis has lost, or waits until it knows that none is lost.
  rewriting: [
    {
      file: 'worker/known-actions.ts',
      from: 'this.#timer = setInterval(() => void this.#tick(), retryEveryMs);',
      to: '',
    },
    { file: 'worker/known-actions.ts', from: 'await this.#look().catch(() => {});\n      },', to: '},' },
    {
      file: 'worker/known-actions.ts',
      from: 'for (const stop of now) if',
      to: 'this.#stops.clear();\n    for (const stop of now) if',
    },
  ],
  // A run is `planned` first, and is given what it obeys in a write for each.
  'single-write': [
    {
      file: 'ledger/create-run.ts',
      from: '[producerFields(plan), other',
      to: '[producerFields({ ...plan, ...noRules }), other',
    },
    { file: 'ledger/create-run.ts', from: 'keys.audit(id), ...whole)) === 1) return;', to: writeEach },
  ],
};

const wanted = process.env.CARELESS!.split(',').flatMap((what) => cuts[what as keyof typeof cuts]);

registerHooks({
  load(url, context, nextLoad) {
    const here = wanted.filter(
      ({ file }) => url.endsWith(`/src/${file}`) || url.endsWith(`/dist/${file.slice(0, -2)}js`),
    );
    if (here.length === 0) return nextLoad(url, context);
    let source = readFileSync(fileURLToPath(url), 'utf8');
    for (const { from, to, file } of here) {
      if (!source.includes(from)) throw new Error(`${file} no longer has: ${from}`);
      source = source.replace(from, () => to.replace('$&', from));
    }
    return { format: url.endsWith('.ts') ? 'module-typescript' : 'module', source, shortCircuit: true };
  },
});
