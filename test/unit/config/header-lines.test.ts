import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readHeaders } from '../../../src/config/header-lines.ts';

const folder = mkdtempSync(join(tmpdir(), 'expunge-headers-'));
afterAll(() => rmSync(folder, { recursive: true }));

const place = (path?: string) => ({ named: 'HEADERS_FILE', path, variable: 'HEADERS' });

describe('headers that hold a secret', () => {
  it('come from a variable, one a line', async () => {
    const read = readHeaders(place(), { HEADERS: 'Authorization: Bearer a:b\n\nX-Type:  blob  \n' });
    expect(await read()).toEqual({ authorization: 'Bearer a:b', 'x-type': 'blob' });
    expect(await readHeaders(place(), {})()).toEqual({});
  });

  it('come from a file, which is read again each time', async () => {
    const path = join(folder, 'headers');
    writeFileSync(path, 'Authorization: one');
    const read = readHeaders(place(path), { HEADERS: 'ignored' });
    writeFileSync(path, 'Authorization: two');
    expect(await read()).toEqual({ authorization: 'two' });
  });

  it.each([
    'geheim',
    'Authorization geheim',
    'Autho rization: geheim',
    'A: gehe\u0007im',
    'A: gehëim',
    'Host: geheim',
    'content-length: 5',
  ])('are refused where a line is no header of ours to give, which is not shown: %j', (line) => {
    const failing = () => readHeaders(place(), { HEADERS: `A: 1\n${line}` });
    expect(failing).toThrow(/^HEADERS, line 2: /);
    expect(failing).not.toThrow(/geheim/);
  });
});
