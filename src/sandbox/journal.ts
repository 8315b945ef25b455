import type { ServerResponse } from 'node:http';
import { definitionOf, type Resource } from '../model/resource.ts';

/** Counts of what the sandbox has done. A request without an answer counts under no status. */
export type Counts = { requests: number; executed: number; byStatus: Map<number, number>; tokens: number };

/** The arrival time of each request, by a monotonic clock, and its status, 0 without an answer. Both are parallel to `seen`. */
type Arrivals = { atMs: number[]; status: number[] };

/** The records to compare a ledger with. Everything but the counts stays empty unless the sandbox records. */
export type Journal = {
  record: boolean;
  counts: Counts;
  arrivals: Arrivals;
  nth: WeakMap<object, number>; // index in `arrivals` for the request of a response
  seen: string[]; // "METHOD target" of every request, byte for byte
  executed: Set<string>; // "resource/id" of objects that existed and were deleted, whatever the answer was
  confirmed: Set<string>; // "resource/id" of the deletes that were answered with a success
};

export function openJournal(record: boolean): Journal {
  const counts = { requests: 0, executed: 0, byStatus: new Map<number, number>(), tokens: 0 };
  return {
    record,
    counts,
    arrivals: { atMs: [], status: [] },
    nth: new WeakMap(),
    seen: [],
    executed: new Set(),
    confirmed: new Set(),
  };
}

/** The journal as it is served over HTTP; for the names see `Journal`. */
export type JournalPage = { requests: string[]; executed: string[]; confirmed: string[] };

export function journalPage({ seen, executed, confirmed }: Journal): JournalPage {
  return { requests: seen, executed: [...executed], confirmed: [...confirmed] };
}

export function noteRequest(journal: Journal, response: ServerResponse): void {
  journal.counts.requests += 1;
  if (!journal.record) return;
  const { method, url } = response.req;
  journal.nth.set(response, journal.seen.push(`${method} ${url}`) - 1);
  journal.arrivals.atMs.push(performance.now());
  journal.arrivals.status.push(0);
}

export function noteExecuted(journal: Journal, resource: Resource, id: string): void {
  journal.counts.executed += 1;
  if (journal.record) journal.executed.add(`${resource}/${id}`);
}

/** Records an answer before it is sent, so that a client that has read a success finds it here. */
export function noteDeleteAnswer(
  journal: Journal,
  response: ServerResponse,
  status: number,
  resource: Resource,
  id: string,
): void {
  noteStatus(journal, response, status);
  if (journal.record && definitionOf(resource).success.includes(status)) journal.confirmed.add(`${resource}/${id}`);
}

export function noteStatus(journal: Journal, response: ServerResponse, status: number): void {
  const { byStatus } = journal.counts;
  byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
  if (journal.record) journal.arrivals.status[journal.nth.get(response)!] = status;
}
