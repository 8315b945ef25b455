import { resetMarks } from '../../src/ledger/cell.ts';
import { KnownCells } from '../../src/ledger/known-cells.ts';
import type { Claim, Ledger } from '../../src/ledger/ledger.ts';
import type { Resource } from '../../src/model/resource.ts';
import { RunModel } from './run-model.ts';

/** What `deleteChunk` asks of a ledger. */
type Asked = Pick<Ledger, 'claim' | 'update' | 'returnChunk' | 'stillHolds' | 'enqueue' | 'steer' | 'keepalive'>;

/**
 * A ledger of one running run in memory. `odd` answers instead of it where a test wants something else to happen. `redis` takes notes for
 * people and has nothing to say.
 */
export function openMemoryLedger(cells: number[][], odd: Partial<Asked> = {}, more: Partial<Claim> = {}) {
  const model = new RunModel(cells.map(({ length }) => length));
  cells.forEach((chunk, n) => {
    model.cells[n] = [...chunk];
  });
  model.state = 'running';
  model.enqueue(0);
  const details: string[] = [];
  const redis = {
    defineCommand() {},
    hincrby: async () => 1,
    hset: async (_key: string, field: string, value: string) => void details.push(`${field} ${value}`),
  };
  const ids = { resource: 'annotations' as Resource, idAt: (index: number) => `id-${index}` };
  const asked: Asked = {
    claim: async (_run, chunk) => {
      const [epoch, enqueued] = model.claim(chunk, 0);
      if (epoch === 0) return model.state;
      const ledgerChunk = { passEndedAt: 0, times: Buffer.alloc(0), cells: [...model.cells[chunk]!] };
      const server = { process: 'p', history: '', isDurable: null, ancestors: [] };
      return {
        enqueued,
        epoch,
        server,
        doubt: '',
        isTakeover: false,
        onStatus: '',
        ledgerChunk,
        passedMs: 0,
        ids,
        known: new KnownCells([], server),
        sendable: model.cells[chunk]!.length,
        ...more,
      };
    },
    update: async ({ chunk, epoch, results = [], wanted = [] }) => {
      const isHolder = model.open.get(chunk) === epoch;
      const granted = model.update(chunk, epoch, results, wanted);
      return { state: isHolder ? model.state : 'stale', cells: granted };
    },
    returnChunk: async ({ chunk, epoch, dueInMs, resetsMarks, isRetry }) => {
      if (resetsMarks) model.cells[chunk] = model.cells[chunk]!.map(resetMarks);
      return model.returnChunk({ chunk, epoch, dueAt: dueInMs, isRetry });
    },
    stillHolds: async () => true,
    enqueue: async () => model.enqueue(0),
    steer: async (_run, _now, { action }) => {
      const [before, after] = model.steer(action, 0);
      return { before, after, isChanged: before !== after, isStale: false };
    },
    keepalive: async () => {},
  };
  return { model, details, ledger: { redis, ...asked, ...odd } as unknown as Ledger };
}
