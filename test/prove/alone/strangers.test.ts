import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { openHarness } from '../../support/harness.ts';
import { openProbes } from '../../support/probes.ts';
import { startNode } from '../../support/processes.ts';

const attackers = fileURLToPath(new URL('../../support/attackers.ts', import.meta.url));
const answersWithinMs = 1_000;

test('whoever is not logged in cannot keep probes and the dashboard from being answered', async ({
  onTestFinished,
}) => {
  const harness = await openHarness(onTestFinished);
  const probes = await openProbes(await harness.spawnWorker(['--http', '0'], { EXPUNGE_OPEN_METRICS: 'true' }));
  const memory = async () => (await probes.scrape()).value('process_resident_memory_bytes')! / 1e6;
  const megabytes = [await memory()];
  const width = 190; // of each kind: together more than there may be at once
  const attack = harness.own(startNode([attackers, new URL(probes.url).port, String(width)], {}));
  const began = performance.now();
  const told: { path: string; status: number; ms: number }[] = [];
  for (const endMs of [30_000, 60_000, 90_000, 120_000]) {
    while (performance.now() - began < endMs) {
      for (const path of ['/healthz', '/readyz', '/login']) {
        const { status, ms } = await probes.get(path).catch((error) => ({ status: 0, ms: 0, error }));
        told.push({ path, status, ms });
      }
      await sleep(1_000);
    }
    megabytes.push(await memory());
  }
  const times = told.map(({ ms }) => ms).sort((a, b) => a - b);
  const at = (share: number) => `${times[Math.floor((times.length - 1) * share)]!.toFixed(0)} ms`;
  console.log(
    `${times.length} answers: median ${at(0.5)}, 95 % within ${at(0.95)}, longest ${at(1)}; MB before and during: ${megabytes.map(Math.round).join(', ')}`,
  );
  expect([attack.isOver, attack.stderr]).toEqual([false, '']);
  expect(told.filter(({ status }) => status !== 200)).toEqual([]);
  expect(Math.max(...times)).toBeLessThan(answersWithinMs);
  expect(megabytes.at(-1)).toBeLessThan(megabytes[0]! + 150);
});
