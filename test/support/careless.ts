import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { Careless } from './action-walk-scene.ts';

// Loaded before expunge (`node --import`), it takes one safety out of its source, which CARELESS names. What a walk shows of such a process, and
// not of the real one, is what the safety is for. It throws where the source no longer has the safety that is to be taken out.

type Cut = { file: string; from: string; to: string };

const writeEach = `keys.audit(id), ...whole)) === 1) {
    for (const [field, value] of Object.entries(producerFields(plan))) await redis.hset(keys.run(id), field, value);
    return;
  }`;

const cuts: Record<Careless, readonly Cut[]> = {
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

const wanted = cuts[process.env.CARELESS as Careless];

registerHooks({
  load(url, context, nextLoad) {
    const here = wanted.filter(({ file }) => url.endsWith(`/src/${file}`));
    if (here.length === 0) return nextLoad(url, context);
    let source = readFileSync(fileURLToPath(url), 'utf8');
    for (const { from, to, file } of here) {
      if (!source.includes(from)) throw new Error(`${file} no longer has: ${from}`);
      source = source.replace(from, () => to);
    }
    return { format: 'module-typescript', source, shortCircuit: true };
  },
});
