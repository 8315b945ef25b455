import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';

/** Writes a CSV of `count` random UUIDs with the header `id`. */
export async function writeIds(path: string, count: number): Promise<void> {
  const file = createWriteStream(path);
  file.write('id\n');
  for (let n = 0; n < count; n += 1_000) {
    const lines = Array.from({ length: Math.min(1_000, count - n) }, () => `${randomUUID()}\n`);
    if (!file.write(lines.join(''))) await once(file, 'drain');
  }
  file.end();
  await once(file, 'finish');
}
