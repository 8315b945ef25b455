import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openHarness } from '../support/harness.ts';
import { openProbes } from '../support/probes.ts';
import { sized } from '../support/size.ts';

/** What one connection of an attacker sends, part by part; after the last one it stays open. */
const attacks = {
  'slow headers': () => ['GET /healthz HTTP/1.1\r\n', ...Array.from({ length: 100 }, (_, n) => `x-${n}: y\r\n`)],
  'slow bodies': () => ['GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n', ...'x'.repeat(100)],
  'slow logins': () => ['POST /login HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n', ...'x'.repeat(100)],
  silent: () => [],
  many: () => ['GET /login HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(20)],
  huge: () => [
    'POST /login HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\n',
    ...Array<string>(50).fill('x'.repeat(65_536)),
  ],
};

/** Keeps so many connections to a port open, and opens others for those that are closed, until it is stopped. */
async function attack(port: number, partsOf: () => string[], width: number, stop: AbortSignal) {
  const hold = async () => {
    while (!stop.aborted) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      socket.resume();
      for (const part of partsOf()) {
        if (stop.aborted || socket.destroyed) break;
        socket.write(part);
        await sleep(part.length > 1_000 ? 1 : 200);
      }
      for (let waited = 0; waited < 50 && !socket.destroyed && !stop.aborted; waited++) await sleep(100);
      socket.destroy();
      await sleep(300); // an attacker of this machine has the same processor
    }
  };
  await Promise.all(Array.from({ length: width }, hold));
}

test('whoever is not logged in cannot keep probes and the dashboard from being answered', async ({
  onTestFinished,
}) => {
  const harness = await openHarness(onTestFinished);
  const probes = await openProbes(await harness.spawnWorker(['--http', '0', '--open-metrics']));
  const memory = async () => (await probes.scrape()).value('process_resident_memory_bytes')! / 1e6;
  const before = await memory();
  const end = new AbortController();
  const width = sized(110, 250); // of each kind: more than there may be at once
  const under = Object.values(attacks).map((partsOf) =>
    attack(Number(new URL(probes.url).port), partsOf, width, end.signal),
  );
  const told: { path: string; status: number; ms: number }[] = [];
  for (let second = 0; second < sized(10, 120); second++) {
    for (const path of ['/healthz', '/readyz', '/login']) {
      const { status, ms } = await probes.get(path).catch((error) => ({ status: 0, ms: 0, error }));
      told.push({ path, status, ms });
    }
    await sleep(1_000);
  }
  const after = await memory();
  end.abort();
  await Promise.all(under);
  const times = told.map(({ ms }) => ms).sort((a, b) => a - b);
  console.log(
    `${told.length} answers: median ${times[times.length >> 1]!.toFixed(0)} ms, longest ${times.at(-1)!.toFixed(0)} ms; ${before.toFixed(0)} MB before, ${after.toFixed(0)} MB during`,
  );
  expect(told.filter(({ status }) => status !== 200)).toEqual([]);
  expect(after).toBeLessThan(before + 150);
});
