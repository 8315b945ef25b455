import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keepUntil, readKeptUntil, removeOldFiles, runFolder } from '../../../src/report/file-retention.ts';

const day = 86_400_000;
const now = Date.parse('2026-12-20T00:00:00Z');
let stateDir: string;

beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'expunge-test-'));
});
afterEach(() => rmSync(stateDir, { recursive: true }));

async function makeReport(run: string, until: number | null): Promise<string> {
  const folder = runFolder(stateDir, run);
  mkdirSync(folder, { recursive: true });
  for (const name of ['outcomes.csv', 'failures.csv', 'audit.ndjson', 'report.html'])
    writeFileSync(join(folder, name), 'text');
  if (until !== null) await keepUntil(folder, until);
  return folder;
}

const remove = (keepMs = 30 * day) => removeOldFiles(stateDir, keepMs, now);

test('the report of a finalized run is kept until the day that its folder names, whatever --keep of another command is', async () => {
  const [old, young] = [await makeReport('old', now - 1), await makeReport('young', now + day)];
  await remove(1);
  expect(existsSync(old)).toBe(false);
  expect(readdirSync(young).sort()).toEqual([
    'audit.ndjson',
    'failures.csv',
    'kept-until',
    'outcomes.csv',
    'report.html',
  ]);
  expect(await readKeptUntil(young)).toBe(now + day);
  expect(statSync(join(young, 'kept-until')).mode & 0o777).toBe(0o600);
});

test('files of a run that names no day, or none that can be read, stay', async () => {
  const folders = [await makeReport('running', null), await makeReport('odd', now - day)];
  for (const text of ['for ever\n', '2025-01-01\n', 'before 2025-01-01T00:00:00Z\n']) {
    writeFileSync(join(folders[1]!, 'kept-until'), text);
    expect(await readKeptUntil(folders[1]!)).toBeNull();
    await remove();
  }
  for (const folder of folders) expect(existsSync(join(folder, 'outcomes.csv'))).toBe(true);
});

test('a report of which a part was removed before goes as well', async () => {
  const old = await makeReport('old', now - day);
  rmSync(join(old, 'failures.csv'));
  await remove();
  expect(existsSync(old)).toBe(false);
});

test('files of somebody else stay, and so does what a link leads to', async () => {
  const old = await makeReport('old', now - day);
  writeFileSync(join(old, 'notes.txt'), 'mine');
  const elsewhere = join(stateDir, 'elsewhere');
  mkdirSync(elsewhere);
  writeFileSync(join(elsewhere, 'outcomes.csv'), 'mine');
  await keepUntil(elsewhere, now - day);
  symlinkSync(elsewhere, runFolder(stateDir, 'link'));
  await remove();
  expect(readdirSync(old)).toEqual(['notes.txt']);
  expect(readdirSync(elsewhere).sort()).toEqual(['kept-until', 'outcomes.csv']);
});

test('a draft of a report goes with it only where the process that wrote it is gone', async () => {
  const old = await makeReport('old', now - day);
  const draft = (pid: number) => `.outcomes.csv.${hostname()}-${pid}-0123456789ab.part`;
  for (const pid of [process.ppid, spawnSync('true').pid]) writeFileSync(join(old, draft(pid)), 'text');
  await remove();
  expect(readdirSync(old)).toEqual([draft(process.ppid)]);
});

test.each([
  ['30 days', 30 * day, 31, false],
  ['30 days', 30 * day, 29, true],
  ['a year', 365 * day, 31, true],
  ['an hour, which other lists may not have', 3_600_000, 29, true],
])(
  'with --keep of %s (%d ms) a list of rejected rows that was written %d days ago stays: %s',
  async (_, keepMs, days, stays) => {
    const folder = join(stateDir, 'rejects');
    mkdirSync(folder);
    for (const name of ['0123456789ab.csv', 'mine.csv']) {
      writeFileSync(join(folder, name), 'text');
      utimesSync(join(folder, name), new Date(now - days * day), new Date(now - days * day));
    }
    await remove(keepMs);
    expect(readdirSync(folder)).toEqual(stays ? ['0123456789ab.csv', 'mine.csv'] : ['mine.csv']);
  },
);

test('nothing is said of a folder that has no files yet', async () => {
  await expect(removeOldFiles(join(stateDir, 'none'), day, now)).resolves.toBeUndefined();
});
