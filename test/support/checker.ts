import { type OutcomeRow, readOutcomes } from '../../src/ledger/outcome-rows.ts';
import { isFinalized, type Run } from '../../src/ledger/run.ts';
import { checkConservation, finalizeTally, tallyLedger } from '../../src/ledger/tally.ts';
import { definitionOf, type Resource } from '../../src/model/resource.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import type { Sandbox } from '../../src/sandbox/server.ts';
import type { Harness } from './harness.ts';

/** What a run is held against: its input, and what the server saw. */
export type Evidence = {
  redis: RedisClient;
  run: Run;
  sandbox: Pick<Sandbox, 'seen' | 'executed' | 'confirmed' | 'exists'>;
  resource: Resource;
  /** The lines of the list, in order. */
  ids: readonly string[];
  /** Objects nobody asked to delete. */
  bystanders: readonly string[];
};

/** One promise; says what breaks it, or nothing. */
type Invariant = { promise: string; broken: (row: OutcomeRow, facts: Facts) => boolean };
type Facts = { executed: boolean; confirmed: boolean; exists: boolean; requests: number };

const invariants: Invariant[] = [
  { promise: 'every id has an outcome', broken: ({ outcome }) => outcome === 'pending' },
  { promise: 'deleted was answered with a success', broken: is('deleted', ({ confirmed }) => !confirmed) },
  { promise: 'absent was never deleted by us', broken: is('absent', ({ executed }) => executed) },
  { promise: 'absent does not exist', broken: is('absent', ({ exists }) => exists) },
  { promise: 'gone_unconfirmed does not exist', broken: is('gone_unconfirmed', ({ exists }) => exists) },
  { promise: 'failed was never deleted by us', broken: is('failed', ({ executed }) => executed) },
  { promise: 'not_attempted was never deleted by us', broken: is('not_attempted', ({ executed }) => executed) },
  { promise: 'no row counts more attempts than requests', broken: ({ attempts }, { requests }) => attempts > requests },
  {
    promise: 'what was settled while reading was never sent',
    broken: ({ outcome }, { requests }) => ['rejected', 'protected'].includes(outcome) && requests > 0,
  },
];

function is(outcome: OutcomeRow['outcome'], broken: (facts: Facts) => boolean): Invariant['broken'] {
  return (row, facts) => row.outcome === outcome && broken(facts);
}

/** What the server saw without the requests for tokens, which are our own. */
function withoutTokenRequests({ seen, executed, confirmed, exists }: Evidence['sandbox']): Evidence['sandbox'] {
  return { seen: seen.filter((request) => request !== 'POST /oauth/token'), executed, confirmed, exists };
}

/** The first promise that a finalized run breaks, with the id it breaks it for, or null. */
export async function findBroken(evidence: Evidence): Promise<string | null> {
  const { redis, sandbox, resource, bystanders } = evidence;
  if (!isFinalized(evidence.run.state)) return `the run has not ended: it is ${evidence.run.state}`;
  const run = await finalizeTally(redis, evidence.run);
  const unbalanced = checkConservation(run, await tallyLedger(redis, run));
  if (unbalanced) return unbalanced;
  const lost = bystanders.find((id) => !sandbox.exists(resource, id));
  if (lost !== undefined) return `bystander ${lost} is gone`;
  return (await findBrokenRow(evidence, run)) ?? findUnasked(evidence);
}

async function findBrokenRow({ redis, sandbox, resource, ids }: Evidence, run: Run): Promise<string | null> {
  const requests = countRequests(sandbox.seen);
  let line = 0;
  for await (const page of readOutcomes(redis, run)) {
    for (const row of page) {
      if (row.line !== line + 1 || row.id !== ids[line]) return `line ${line + 1} of the list is not in the report`;
      line++;
      const name = `${resource}/${row.id}`;
      const facts = {
        executed: sandbox.executed.has(name),
        confirmed: sandbox.confirmed.has(name),
        exists: sandbox.exists(resource, row.id),
        requests: requests.get(requestOf(resource, row.id)) ?? 0,
      };
      const found = invariants.find(({ broken }) => broken(row, facts));
      if (found)
        return `"${found.promise}" is broken by ${row.id}: ${row.outcome} ${row.code}, ${JSON.stringify(facts)}`;
    }
  }
  return line === ids.length ? null : `the report ends after line ${line} of ${ids.length}`;
}

function findUnasked({ sandbox, resource, ids }: Evidence): string | null {
  const asked = new Set(ids.map((id) => requestOf(resource, id)));
  const unasked = sandbox.seen.find((request) => !asked.has(request));
  return unasked === undefined ? null : `nobody asked for ${unasked}`;
}

/** The request for an object, as the sandbox records it. */
export function requestOf(resource: Resource, id: string): string {
  return `DELETE ${definitionOf(resource).path.split('{id}').join(encodeURIComponent(id))}`;
}

function countRequests(seen: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const request of seen) counts.set(request, (counts.get(request) ?? 0) + 1);
  return counts;
}

/** The promise that the only run of a target broke, a run of these annotations; requests for tokens are left out. */
export async function findBrokenIn(harness: Harness, ids: readonly string[]): Promise<string | null> {
  const sandbox = withoutTokenRequests(harness.sandbox);
  const run = await harness.onlyRun();
  return findBroken({ ...harness, sandbox, run, resource: 'annotations', ids, bystanders: [] });
}
