import { randomUUID } from 'node:crypto';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { cacheServerIdentity, hasAllOf, type ServerIdentity } from '../redis/server-identity.ts';
import { storedEntry } from './audit.ts';
import {
  type Cell,
  type CellResult,
  decodeLedgerChunk,
  type LedgerChunk,
  packIndexes,
  packResults,
  unpackCells,
} from './cell.ts';
import {
  claimLua,
  enqueueLua,
  hasOrphansLua,
  keepaliveLua,
  reclaimLua,
  recoverLua,
  returnChunkLua,
} from './chunks.lua.ts';
import { serverIdentityArguments } from './doubt.lua.ts';
import { KnownCells } from './known-cells.ts';
import { knownUpdateArguments, knownUpdateLua } from './known-update.lua.ts';
import { type ChunkIds, decodeIdsOfChunk } from './manifest.ts';
import { Misfits } from './misfits.ts';
import type { HaltCode, RunState, SteeredBy } from './run.ts';
import { steerLua } from './steer.lua.ts';
import { updateLua } from './update.lua.ts';

/**
 * The state of a run as a script finds it. 'missing': Redis has lost the run. 'broken': Redis has lost this chunk of the run. 'stale': another holder
 * has the chunk. 'other_version': the run is written in a form that this version doesn't know. 'other_definition': this process defines a resource of
 * the run in another way.
 */
export type ObservedState = RunState | 'missing' | 'broken' | 'stale' | 'other_version' | 'other_definition';

/** A claimed chunk. `enqueued`: chunks that became open with it, as by `enqueue`. */
export type Claim = {
  enqueued: number[];
  epoch: number;
  server: ServerIdentity; // the Redis process that held the run when the chunk was claimed
  isTakeover: boolean; // its former holder has never returned it
  doubt: string; // why the run is in doubt, if this claim discovered the doubt; otherwise ''
  onStatus: string; // --on-status of the run
  ledgerChunk: LedgerChunk;
  passedMs: number; // time since the last pass over it ended
  ids: ChunkIds;
  known: KnownCells;
  sendable: number; // how many of its ids may be marked, counted from the first
};

/**
 * The answer of an update; see update.lua.ts. `cells` is parallel to the requested indexes, or empty. `settledBefore`: the places of results whose ids
 * had an outcome already. `isReturned`: the update returned the chunk.
 */
export type Grant = { state: ObservedState; cells: Cell[]; settledBefore?: ReadonlySet<number>; isReturned?: boolean };

/** An update of a chunk by its holder. */
export type Update = {
  run: string;
  chunk: number;
  epoch: number; // as claimed
  results?: readonly CellResult[];
  wanted?: readonly number[]; // indexes of the ids to mark
  known?: KnownCells | undefined; // what the holder knows of the cells; see `KnownCells.plan`
  isLast?: boolean; // the holder needs the chunk no longer
};

/** A chunk that its holder returns. */
export type ReturnedChunk = {
  run: string;
  chunk: number;
  epoch: number; // as claimed
  dueInMs: number | null; // null: all its cells are settled, or the first `sendable` of them
  resetsMarks?: boolean; // see `resetMarks`
  sendable?: number | undefined; // how many of its ids might be marked; without it all
  isRetry?: boolean; // all its remaining ids have failed before
};

/** A change of state that an operator, a signal or a guard asks for. */
export type Steering = {
  action: 'start' | 'pause' | 'halt' | 'cancel';
  from?: RunState; // only if the run has this state, and no operator has paused it
  seen?: number; // a start is refused if the run now has another revision
  id?: string; // names the action, if the action is written again after a loss; see worker/known-actions.ts
  reason: string;
  by: SteeredBy;
  who: string;
  halt?: HaltCode;
};

/** The states of a run before and after an action. */
type Steered = { before: ObservedState; after: ObservedState; isChanged: boolean; isStale: boolean };

/** Every write to a run after its planning. Each can be repeated; the comment of its script says why. All throw if Redis doesn't answer. */
export type Ledger = ReturnType<typeof openLedger>;

type Scripts = {
  expungeUpdate(...args: (string | Buffer | number)[]): Promise<unknown>;
  expungeKnownUpdate(...args: (string | Buffer | number)[]): Promise<number>;
  expungeEnqueue(...args: (string | number)[]): Promise<number[]>;
  expungeClaim(...args: (string | number)[]): Promise<unknown>;
  expungeReturnChunk(...args: (string | Buffer | number)[]): Promise<ObservedState>;
  expungeKeepalive(...args: (string | number)[]): Promise<unknown>;
  expungeReclaim(...args: string[]): Promise<ObservedState>;
  expungeSteer(...args: (string | number)[]): Promise<[before: ObservedState, after: ObservedState, changed: number]>;
  expungeHasOrphans(...args: string[]): Promise<number>;
  expungeRecover(...args: (string | number)[]): Promise<ObservedState>;
};

/** An epoch that no holder has. An update with it writes its results like a former holder, and gets no marks. */
export const noEpoch = -1;

/**
 * Opens the ledger on a connection that fails fast: a lost Redis is an error at once, never a queue of stale writes. `now` is for tests with a time of
 * their own, in ms since 1970; '' = the time of Redis.
 */
export function openLedger(redis: RedisClient, now: () => number | '' = () => '') {
  const scripts = defineScripts(redis);
  const servers = cacheServerIdentity(redis);
  const misfits = new Misfits(redis);
  return {
    redis,

    /**
     * Whether a claim is still valid. Once Redis may have lost data it is not, because the claim of a later holder may be lost. Reads from Redis only
     * after the connection was lost.
     */
    async stillHolds(run: string, { server }: Pick<Claim, 'server'>): Promise<boolean> {
      return hasAllOf(await servers.of(run), server);
    },

    /** Merges results, then marks the requested indexes, if this holder still has the chunk. */
    async update({ run, chunk, epoch, results = [], wanted = [], known, isLast = false }: Update): Promise<Grant> {
      const planned = known?.plan(results, wanted, isLast);
      if (
        known &&
        planned &&
        (await scripts.expungeKnownUpdate(...knownUpdateArguments(run, chunk, epoch, planned))) === 1
      )
        return { state: 'running', cells: known.accept(planned, wanted), isReturned: planned.returnsChunk };
      // Another Redis than at the claim may have made the comparison, so check the server after it.
      const holds = !planned || !known || hasAllOf(await servers.of(run), known.server);
      const all = [keys.ledger(run, chunk), keys.run(run), keys.open(run), keys.audit(run)];
      const merge = [chunk, holds ? epoch : noEpoch, packResults(results), packIndexes(wanted)];
      const [state, cells, settledBefore = []] = (await scripts.expungeUpdateBuffer(...all, ...merge)) as [
        Buffer,
        Buffer,
        number[]?,
      ];
      const grant = {
        state: state.toString('latin1') as ObservedState,
        cells: unpackCells(cells),
        ...(settledBefore.length > 0 && { settledBefore: new Set(settledBefore) }),
      };
      if (planned) known?.forget();
      else known?.merge(results, wanted, grant.cells);
      return grant;
    },

    /** How the resources of a run are defined in another way here, in words; '' = they are not. */
    describeMisfit(run: string): Promise<string> {
      return misfits.whyNot(run);
    },

    /** Enqueues due and new chunks. Returns the chunks that became open; the caller must add their jobs to the queue. */
    enqueue(run: string): Promise<number[]> {
      return scripts.expungeEnqueue(keys.run(run), keys.open(run), keys.deferred(run), keys.audit(run), now());
    },

    /** Claims an open chunk under a new epoch. Returns the state of the run if there is nothing to do. Throws INTERNAL for damaged bytes. */
    async claim(run: string, chunk: number): Promise<Claim | ObservedState> {
      if ((await misfits.whyNotClaim(run, chunk)) !== '') return 'other_definition';
      const known = await servers.of(run);
      const [state, epoch, cells, manifest, enqueued, onStatus, process, history, doubt, at, sendable, takenOver] =
        (await scripts.expungeClaimBuffer(
          keys.run(run),
          keys.open(run),
          keys.deferred(run),
          keys.ledger(run, chunk),
          keys.manifest(run, chunk),
          keys.audit(run),
          chunk,
          now(),
          ...serverIdentityArguments(known),
        )) as [Buffer, number, Buffer, Buffer, number[], Buffer, Buffer, Buffer, Buffer, number, number, number];
      if (epoch === 0) return state.toString('latin1') as ObservedState;
      const ledgerChunk = decodeLedgerChunk(cells);
      const ids = decodeIdsOfChunk(chunk, manifest, ledgerChunk.cells.length);
      const answered = { process: process.toString('latin1'), history: history.toString('latin1') };
      const isOther = answered.process !== known.process || answered.history !== known.history;
      if (isOther) servers.forget(run);
      const server = isOther ? { ...answered, isDurable: null, ancestors: [] } : known;
      const passedMs = at - ledgerChunk.passEndedAt;
      return {
        epoch,
        known: new KnownCells(ledgerChunk.cells, server),
        ledgerChunk,
        passedMs,
        enqueued,
        ids,
        onStatus: onStatus.toString('latin1'),
        server,
        doubt: doubt.toString('latin1'),
        sendable: sendable < 0 ? ledgerChunk.cells.length : sendable,
        isTakeover: takenOver === 1,
      };
    },

    /** Returns a chunk that was claimed. The answer is the state of the run. */
    returnChunk({ run, chunk, epoch, dueInMs, resetsMarks, sendable, isRetry }: ReturnedChunk): Promise<ObservedState> {
      return scripts.expungeReturnChunk(
        keys.run(run),
        keys.open(run),
        keys.deferred(run),
        keys.ledger(run, chunk),
        chunk,
        epoch,
        now(),
        dueInMs === null ? '' : Math.ceil(dueInMs),
        resetsMarks ? 1 : 0,
        sendable ?? '',
        isRetry ? 1 : 0,
      );
    },

    /** Records that this process is alive and holds chunks of the run; only a run that is being cancelled needs it. */
    async keepalive(run: string, process: string, requestTimeoutMs: number): Promise<void> {
      await scripts.expungeKeepalive(keys.run(run), keys.holders(run), process, requestTimeoutMs);
    },

    /** Ends a cancellation whose holders are dead; their later results count as late. Returns the state of the run. */
    reclaim(run: string): Promise<ObservedState> {
      return scripts.expungeReclaim(keys.run(run), keys.open(run), keys.deferred(run), keys.holders(run));
    },

    /**
     * Changes the state of a run. Returns the states before and after, which are equal if the change isn't allowed; whether it changed anything (even a
     * pause of a paused run may); and whether it was refused because the run has changed since. `now`: ms since 1970.
     */
    async steer(
      run: string,
      now: number,
      { action, from, seen, id, reason, by, who, halt }: Steering,
    ): Promise<Steered> {
      const facts = halt === undefined ? {} : { halt };
      const entry = storedEntry({ at: now, action, by, who, reason, ...facts });
      const [before, after, changed] = await scripts.expungeSteer(
        keys.run(run),
        keys.open(run),
        keys.deferred(run),
        keys.audit(run),
        action,
        reason,
        by,
        who,
        halt ?? '',
        entry,
        from ?? '',
        id ?? randomUUID().slice(0, 8),
        seen ?? '',
        ...serverIdentityArguments(await servers.of(run)),
      );
      return { before, after, isChanged: changed === 1, isStale: changed === -1 };
    },

    /** Whether chunks are orphaned: the run would never end without `recover`. */
    async hasOrphans(run: string): Promise<boolean> {
      return (await scripts.expungeHasOrphans(keys.run(run), keys.open(run), keys.deferred(run))) === 1;
    },

    /** Makes orphaned chunks due again, and puts the run in doubt. Returns its state. */
    recover(run: string, chunks: number[], reason: string): Promise<ObservedState> {
      const all = [keys.run(run), keys.open(run), keys.deferred(run), keys.audit(run)];
      return scripts.expungeRecover(...all, now(), reason, ...chunks);
    },
  };
}

function defineScripts(redis: RedisClient) {
  redis.defineCommand('expungeUpdate', { numberOfKeys: 4, lua: updateLua });
  redis.defineCommand('expungeKnownUpdate', { numberOfKeys: 3, lua: knownUpdateLua });
  redis.defineCommand('expungeEnqueue', { numberOfKeys: 4, lua: enqueueLua });
  redis.defineCommand('expungeClaim', { numberOfKeys: 6, lua: claimLua });
  redis.defineCommand('expungeReturnChunk', { numberOfKeys: 4, lua: returnChunkLua });
  redis.defineCommand('expungeKeepalive', { numberOfKeys: 2, lua: keepaliveLua });
  redis.defineCommand('expungeReclaim', { numberOfKeys: 4, lua: reclaimLua });
  redis.defineCommand('expungeSteer', { numberOfKeys: 4, lua: steerLua });
  redis.defineCommand('expungeHasOrphans', { numberOfKeys: 3, lua: hasOrphansLua });
  redis.defineCommand('expungeRecover', { numberOfKeys: 4, lua: recoverLua });
  return redis as unknown as Scripts & {
    expungeUpdateBuffer: Scripts['expungeUpdate'];
    expungeClaimBuffer: Scripts['expungeClaim'];
  };
}
