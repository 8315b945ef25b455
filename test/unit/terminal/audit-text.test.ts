import { expect, test } from 'vitest';
import { type AuditEntry, auditLength } from '../../../src/ledger/audit.ts';
import { auditText } from '../../../src/terminal/audit-text.ts';

const at = Date.UTC(2026, 10, 20, 16, 6, 7, 400);
const entry: AuditEntry = { at, action: 'pause', by: 'operator', who: 'ana', reason: '' };

test('an audit trail is told in aligned lines: when, what, by whom, why', () => {
  const entries: AuditEntry[] = [
    { ...entry, reason: 'release\nwindow \u001b[31m' },
    { ...entry, action: 'rate', rate: '200/s', burst: null },
    { ...entry, action: 'rate', rate: null, burst: 5 },
    { ...entry, action: 'start', expectAbsent: true },
    { ...entry, action: 'halt', by: 'guard', who: '', halt: 'forbidden', reason: 'all of the first 20' },
  ];
  expect(auditText(entries)).toEqual([
    '2026-11-20 16:06:07 UTC  pause               ana    release window',
    '2026-11-20 16:06:07 UTC  rate 200/s          ana',
    '2026-11-20 16:06:07 UTC  rate none burst 5   ana',
    '2026-11-20 16:06:07 UTC  go on expectAbsent  ana',
    '2026-11-20 16:06:07 UTC  halt forbidden      guard  all of the first 20',
  ]);
});

test('the first start of a run is no going on, a later one is', () => {
  const told = tell(['submit', 'start', 'pause', 'start', 'halt', 'start']);
  expect(told).toEqual(['submit', 'start', 'pause', 'go on', 'halt', 'go on']);
});

test('a start is told as what it was where only the last entries are shown', () => {
  expect(tell(['submit', 'start', 'pause'], 2)).toEqual(['start', 'pause']);
  expect(tell(['submit', 'start', 'pause', 'start'], 2)).toEqual(['pause', 'go on']);
});

test('no start is told as the first where the oldest entries have gone', () => {
  const kept = ['submit', ...Array.from({ length: auditLength }, (_, i) => (i % 2 === 0 ? 'start' : 'pause'))];
  expect(tell(kept)).not.toContain('start');
});

/** What is told of these actions, the oldest first. */
function tell(actions: string[], shown?: number): string[] {
  const lines = auditText(
    actions.map((action) => ({ ...entry, action })),
    shown,
  );
  return lines.map((line) => line.slice(25).replace('ana', '').trim());
}
