import type { Resource } from '../ledger/outcome.ts';

/** What the sandbox did so far. A request that got no answer counts under no status. */
export type Counts = { requests: number; executed: number; byStatus: Map<number, number>; tokens: number };

/** What a ledger can be held against. Everything but the counts stays empty unless the sandbox records. */
export type Journal = {
  record: boolean;
  counts: Counts;
  seen: string[]; // "METHOD target" of every request, as its bytes came
  executed: Set<string>; // "resource/id" of objects that existed and were deleted, whatever was answered
  answered204: Set<string>; // "resource/id" of the deletes that were answered 204
};

export function openJournal(record: boolean): Journal {
  const counts = { requests: 0, executed: 0, byStatus: new Map<number, number>(), tokens: 0 };
  return { record, counts, seen: [], executed: new Set(), answered204: new Set() };
}

export function noteRequest(journal: Journal, method: string, target: string): void {
  journal.counts.requests += 1;
  if (journal.record) journal.seen.push(`${method} ${target}`);
}

export function noteExecuted(journal: Journal, resource: Resource, id: string): void {
  journal.counts.executed += 1;
  if (journal.record) journal.executed.add(`${resource}/${id}`);
}

/** Written down before the answer leaves: whoever has read a 204 finds it here. */
export function noteDeleteAnswer(journal: Journal, status: number, resource: Resource, id: string): void {
  noteStatus(journal, status);
  if (journal.record && status === 204) journal.answered204.add(`${resource}/${id}`);
}

export function noteStatus({ counts: { byStatus } }: Journal, status: number): void {
  byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
}
