import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { addToken, revokeToken } from '../../../src/api/token-store.ts';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { openHarness } from '../../support/harness.ts';
import { until } from '../../support/processes.ts';

const megabyte = 1_024 * 1_024;

/** The most memory that a process has had so far, in bytes. */
function peakOf(pid: number): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1_024;
}

/** A list of so many bytes, made while it is sent. */
function listOf(bytes: number): ReadableStream<Uint8Array> {
  const lines = new TextEncoder().encode(
    Array.from({ length: 50_000 }, (_, n) => `u-${String(n).padStart(12, '0')}\n`).join(''),
  );
  let left = bytes;
  return new ReadableStream({
    pull(controller) {
      if (left === bytes) controller.enqueue(new TextEncoder().encode('id\n'));
      if (left <= 0) return controller.close();
      controller.enqueue(lines);
      left -= lines.length;
    },
  });
}

describe('a list of any size', () => {
  test.runIf(process.platform === 'linux')('goes to the disk of the server and not into its memory', async () => {
    const harness = await openHarness(onTestFinished);
    await noteTarget(harness.redis, harness.target, Date.now());
    const token = await addToken(harness.redis, {
      name: harness.target.fp,
      role: 'operate',
      reach: null,
      at: 0,
      who: 'test',
      expiresAt: 0,
    });
    onTestFinished(async () => void (await revokeToken(harness.redis, harness.target.fp, 'test', 0)));
    const server = harness.spawn(['dashboard', '--port', '0']);
    const url = await until('it listens', () => /http:\/\/[\d.]+:\d+/.exec(server.stdout)?.[0]);
    const upload = async (bytes: number) => {
      const answer = await fetch(`${url}/api/v1/plans?target=${harness.target.fp}&resource=views&limit=1000`, {
        method: 'POST',
        body: listOf(bytes),
        duplex: 'half',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'text/csv' },
      } as RequestInit);
      return { status: answer.status, body: (await answer.json()) as { confirm: number; plan: string } };
    };
    expect(await upload(megabyte)).toMatchObject({ status: 201, body: { confirm: 1_000 } });
    const before = peakOf(server.pid);
    expect(await upload(400 * megabyte)).toMatchObject({ status: 201, body: { confirm: 1_000 } });
    const grown = (peakOf(server.pid) - before) / megabyte;
    console.log(
      `400 MB sent: ${Math.round(grown)} MB more memory, ${Math.round(peakOf(server.pid) / megabyte)} MB at most`,
    );
    expect(grown).toBeLessThan(200);
  });
});
