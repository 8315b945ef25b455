import type { Session } from '../commands/session.ts';
import { type OutcomeRow, readOutcomes } from '../ledger/outcome-rows.ts';
import { isSealed, type Run } from '../ledger/run.ts';
import { isSuccess, sumOutcomes } from '../model/outcome.ts';
import { whyText } from '../terminal/explain-text.ts';
import { findRunById } from './run-view.ts';

/** Rows that ended the same way without success. */
type Group = { outcome: string; code: string; words: string; count: number; samples: object[] };

const samplesOfGroup = 5;
const freshMs = 5_000;
const keptAtMost = 20;

/** Groups the rows of runs that had no success. Reading a large run takes a while, so what was read is kept for all who look. */
export class FailureReader {
  readonly #session: Session;
  /** `at`: when they were read; infinite while they are. */
  readonly #kept = new Map<string, { at: number; isFinal: boolean; groups: Promise<Group[]> }>();

  constructor(session: Session) {
    this.#session = session;
  }

  async of(id: string): Promise<{ items: Group[] }> {
    const run = await findRunById(this.#session, id);
    const known = this.#kept.get(id);
    const isFinal = isSealed(run.state);
    const isFresh = known?.isFinal || (!isFinal && known !== undefined && performance.now() - known.at < freshMs);
    if (isFresh) return { items: await known.groups };
    const reading = { at: Number.POSITIVE_INFINITY, isFinal, groups: this.#read(run) };
    this.#kept.delete(id);
    this.#kept.set(id, reading);
    for (const oldest of [...this.#kept.keys()].slice(0, -keptAtMost)) this.#kept.delete(oldest);
    try {
      const items = await reading.groups;
      reading.at = performance.now();
      return { items };
    } catch (error) {
      if (this.#kept.get(id) === reading) this.#kept.delete(id);
      throw error;
    }
  }

  /** Of an ended run it reads until it has found all: often they are few. */
  async #read(run: Run): Promise<Group[]> {
    const groups = new Map<string, Group>();
    const all = isSealed(run.state)
      ? sumOutcomes(run.counts, (outcome) => !isSuccess(outcome))
      : Number.POSITIVE_INFINITY;
    let found = 0;
    if (all === 0) return [];
    for await (const page of readOutcomes(this.#session.redis, run)) {
      for (const row of page) {
        if (row.outcome === 'pending' || isSuccess(row.outcome)) continue;
        add(groups, run, row);
        found += 1;
      }
      if (found >= all) break;
    }
    return [...groups.values()].sort((a, b) => b.count - a.count);
  }
}

function add(groups: Map<string, Group>, run: Run, row: OutcomeRow): void {
  const { outcome, code, file, line, resource, id, excerpt } = row;
  const key = `${outcome} ${code}`;
  const words = () => whyText(run, { ...row, open: null }, Date.now());
  const group = groups.get(key) ?? { outcome, code, words: words(), count: 0, samples: [] };
  group.count += 1;
  if (group.samples.length < samplesOfGroup) group.samples.push({ file, line, resource, id, excerpt });
  groups.set(key, group);
}
