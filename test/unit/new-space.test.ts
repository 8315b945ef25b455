import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { sized } from '../support/size.ts';

const start = new URL('../../src/new-space.ts', import.meta.url).href;

/** How many MB of new space a process has that keeps many new objects alive, before and after it may grow. */
const program = `
  import { getHeapSpaceStatistics } from 'node:v8';
  import { growNewSpace, keepNewSpace } from '${start}';
  const mb = () => getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size / 2 ** 20;
  let kept = [];
  async function fill(rounds) {
    for (let round = 0; round < rounds; round++) {
      kept = kept.slice(-20_000);
      for (let n = 0; n < 20_000; n++) kept.push({ n, of: [n] });
      if (round % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 60));
    }
  }
  keepNewSpace();
  await fill(20);
  const before = mb();
  growNewSpace();
  while (mb() < 32) await fill(5);
  await fill(${sized(20, 150)});
  console.log(JSON.stringify([before, mb()]));
`;

test('new objects get a small space for reading and 32 MB for deleting, not more', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--no-warnings',
    '--input-type=module',
    '-e',
    program,
  ]);
  const [before, after] = JSON.parse(stdout) as [number, number];
  expect(before).toBeLessThanOrEqual(4);
  expect(after).toBe(32);
}, 60_000);
