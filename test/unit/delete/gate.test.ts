import { expect, test } from 'vitest';
import { Gate } from '../../../src/delete/gate.ts';

/** A gate in a time that only the test moves. */
function openGate() {
  const time = { now: 5_000 };
  return { time, gate: new Gate(() => time.now) };
}

test('a gate is open for a second after Redis was last asked, and then nothing leaves', () => {
  const { time, gate } = openGate();
  expect(gate.isOpen).toBe(true);
  time.now = 5_999;
  expect(gate.isOpen).toBe(true);
  time.now = 6_000;
  expect(gate.isOpen).toBe(false);
});

test('counts from when the question was sent that Redis answered', () => {
  const { time, gate } = openGate();
  time.now = 5_900;
  gate.confirm(5_800);
  time.now = 6_799;
  expect(gate.isOpen).toBe(true);
  time.now = 6_800;
  expect(gate.isOpen).toBe(false);
});

test('is closed for good once it was closed, also where Redis says again that the run goes on', () => {
  const { gate } = openGate();
  expect(gate.closed.aborted).toBe(false);
  gate.close();
  gate.confirm(5_000);
  expect(gate.isOpen).toBe(false);
  expect(gate.closed.aborted).toBe(true);
});

test('is closed by whoever looks at it only when Redis was silent for too long', () => {
  const { time, gate } = openGate();
  gate.closeIfStale();
  expect(gate.closed.aborted).toBe(false);
  time.now = 6_000;
  gate.closeIfStale();
  expect(gate.closed.aborted).toBe(true);
});
