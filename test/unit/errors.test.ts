import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readNamedFile } from '../../src/errors.ts';

describe('named file', () => {
  test('a file of somebody else is refused with its owner, and with who has to read it', () => {
    const folder = mkdtempSync(join(tmpdir(), 'expunge-file-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    chmodSync(folder, 0o755);
    const path = join(folder, 'token');
    writeFileSync(path, 'secret', { mode: 0o200 });
    const owner = process.geteuid!();
    const read = () => readNamedFile('--token-file', path, 'CREDENTIALS');
    asAnother(() => {
      const message = `--token-file ${path}: user ${process.geteuid!()} may not read it, it belongs to user ${owner} (mode 200)`;
      const next = expect.stringContaining('WORKER_UID');
      expect(read).toThrow(expect.objectContaining({ code: 'CREDENTIALS', message, next }));
    });
  });

  /** Root may read everything. */
  function asAnother<T>(body: () => T): T {
    if (process.geteuid!() !== 0) return body();
    process.seteuid!(65_534);
    try {
      return body();
    } finally {
      process.seteuid!(0);
    }
  }
});
