import { expect, test } from 'vitest';
import type { AuditEntry } from '../../../src/ledger/audit.ts';
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
    '2026-11-20 16:06:07  pause               ana    release window',
    '2026-11-20 16:06:07  rate 200/s          ana',
    '2026-11-20 16:06:07  rate none burst 5   ana',
    '2026-11-20 16:06:07  go on expectAbsent  ana',
    '2026-11-20 16:06:07  halt forbidden      guard  all of the first 20',
  ]);
});

test('the first start of a run is no going on', () => {
  const entries = ['start', 'pause', 'start', 'submit'].map((action) => ({ ...entry, action }));
  const told = auditText(entries).map((line) => line.slice(21).replace('ana', '').trim());
  expect(told).toEqual(['go on', 'pause', 'start', 'submit']);
});
