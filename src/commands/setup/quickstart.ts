import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { type Config, type SettingName, settings } from '../../config/settings.ts';
import { exitCodes } from '../../errors.ts';
import { count, plural, utcTime } from '../../format.ts';
import { makeStateDir } from '../../input/with-list.ts';
import type { Summary } from '../../ledger/summary.ts';
import { isWorthAnotherRun, sumOutcomes } from '../../model/outcome.ts';
import { anyResource as resource } from '../../model/resource.ts';
import { throttlingStatus } from '../../model/status.ts';
import { type ToType, typedLine } from '../../model/to-type.ts';
import { madeId } from '../../sandbox/objects.ts';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { padded, type Style, styleOf, textWidth } from '../../terminal/style.ts';
import { type Invocation, store } from '../command.ts';
import { execute as run } from '../runs/run.ts';

/** 0.1 % is about two of the 2,000 requests. The seed repeats the same faults. */
const sandboxFaults = {
  'status-503': 0.02,
  [`status-${throttlingStatus}-seconds`]: 0.001,
  reset: 0.002,
  'reset-executed': 0.002,
};
const seed = 1;

/** The list holds rows that are rejected, so the run normally ends with the second code. */
const asExpected: readonly number[] = [exitCodes.OK.exit, exitCodes.INCOMPLETE.exit];

/**
 * Makes a complete run in a few seconds, against a sandbox in this process, with a real list, command and Redis. Returns 0 if every row has the
 * expected outcome. Repeating it makes another run.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { stdout, config } = invocation;
  const style = styleOf(stdout);
  const say = (line: string) => stdout.write(`${line}\n`);
  const list = makeSampleList();
  const objects = { [resource]: heldObjects };
  const sandbox = await startSandbox({ objects, faults: sandboxFaults, seed, latencyMs: 5 });
  try {
    const files = await writeFiles(config.stateDir, list, sandbox);
    const flags = flagsOf(config, sandbox, files);
    for (const line of introduce(sandbox, list, files, style)) say(line);
    say(`\n${style.dim('$')} ${style.bold(commandOf(invocation.program, files, flags))}`);
    const { exit, summary } = await runIt(invocation, files, flags);
    if (summary === null || !asExpected.includes(exit)) {
      say('The sandbox ends with this command: the next quickstart makes a new run.');
      return exit;
    }
    say(`\nThe report begins with\n${await beginOf(join(config.stateDir, 'runs', summary.run, 'outcomes.csv'))}\n`);
    const mismatches = compare(list, summary, sandbox);
    for (const line of conclude(list, exit, mismatches, style)) say(line);
    for (const line of nextSteps(summary.run, invocation.toType)) say(line);
    return mismatches.length === 0 ? exitCodes.OK.exit : exitCodes.INTERNAL.exit;
  } finally {
    await sandbox.close();
  }
}

type Files = { list: string; token: string };

async function writeFiles(stateDir: string, { csv }: SampleList, { token }: Sandbox): Promise<Files> {
  const folder = join(stateDir, 'quickstart');
  const files = { list: join(folder, `${resource}.csv`), token: join(folder, 'token') };
  await makeStateDir(stateDir);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(files.list, csv, { mode: 0o600 });
  await writeFile(files.token, `${token}\n`, { mode: 0o600 });
  return files;
}

type Flags = { [K in SettingName]?: string };

/** The flags of the run, as text; the printed command line and the settings are derived from them. */
function flagsOf({ stateDir }: Config, { url }: Sandbox, { token }: Files): Flags {
  const elsewhere = stateDir === settings.stateDir.fallback ? {} : { stateDir };
  return { resource, baseUrl: url, tokenFile: token, rate: '2000/s', ...elsewhere };
}

function commandOf(program: string, { list }: Files, flags: Flags): string {
  const words = Object.entries(flags).flatMap(([name, text]) => [`--${settings[name as SettingName].flag}`, text]);
  return typedLine(program, 'run', [list, ...words, '--yes']);
}

/** Runs the command. Its messages go to stdout like everything else, so that a pipe has them in order; its JSON is returned. */
async function runIt(
  invocation: Invocation,
  { list }: Files,
  flags: Flags,
): Promise<{ exit: number; summary: Summary | null }> {
  let json = '';
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      json += chunk;
      done();
    },
  }) as unknown as NodeJS.WriteStream;
  const exit = await run({
    ...invocation,
    commandName: 'run',
    args: [list],
    options: { yes: true, json: true },
    config: configOf(invocation.config, flags),
    stdout,
    stderr: invocation.stdout,
  });
  const last = json.trimEnd().split('\n').at(-1);
  return { exit, summary: last ? JSON.parse(last) : null };
}

/** The default settings with these flags and the settings of Redis: all other settings are meant for the user's own API. */
function configOf(config: Config, flags: Flags): Config {
  const values = Object.entries(settings).map(([name, row]) => {
    const text = flags[name as SettingName];
    return [name, text === undefined ? row.fallback : row.parse(text)];
  });
  const kept = store.filter((name) => name !== 'stateDir').map((name) => [name, config[name]]);
  return Object.fromEntries([...values, ...kept]);
}

function introduce({ url }: Sandbox, { rows }: SampleList, { list }: Files, style: Style): string[] {
  const done = style.green('✓');
  return [
    style.bold('A complete run against an API on this machine'),
    `  ${done} Sandbox  ${url} with ${count(heldObjects)} ${resource}`,
    `             2 % of its answers are 503, a few are ${throttlingStatus}, and some connections break`,
    `  ${done} List     ${list} with ${count(rows)} rows`,
    '             some ids are listed twice, some are deleted already, some are invalid',
  ];
}

const shownRows = 3;

async function beginOf(report: string): Promise<string> {
  const lines = (await readFile(report, 'utf8')).split('\n', shownRows + 1);
  return lines.map((line) => `  ${line}`).join('\n');
}

/** Compares the summary with the objects that the sandbox still holds, and describes each difference. */
function compare({ listedIds, otherIds, unusableRows }: SampleList, summary: Summary, sandbox: Sandbox): string[] {
  const remain = listedIds.filter((id) => sandbox.exists(resource, id)).length;
  const lost = otherIds.filter((id) => !sandbox.exists(resource, id)).length;
  const open = sumOutcomes(summary, isWorthAnotherRun);
  return [
    remain > 0 ? `${count(remain)} of the listed ${resource} still exist` : '',
    lost > 0 ? `${count(lost)} ${resource} are gone that were not in the list` : '',
    open > 0 ? `${count(open)} ids are failed, unknown or not_attempted` : '',
    summary.rejected === unusableRows ? '' : `${summary.rejected} rows were rejected, expected ${unusableRows}`,
  ].filter(Boolean);
}

function conclude({ listedIds, otherIds, unusableRows }: SampleList, exit: number, mismatches: string[], style: Style) {
  if (mismatches.length > 0) return mismatches.map((mismatch) => `${style.red('✗')} ${mismatch}`);
  const done = style.green('✓');
  return [
    `${done} Asked the sandbox: none of the ${count(listedIds.length)} ids exists any more,`,
    `  and all ${otherIds.length} ${resource} that were not in the list still do.`,
    `${done} By itself the command ends with exit code ${exit}: ${plural(unusableRows, 'rows')} held no usable id.`,
  ];
}

function nextSteps(run: string, toType: ToType): string[] {
  const steps = [
    [toType('run', '--help'), 'for a list of your own'],
    [toType('sandbox'), 'an API like this one, to practise on'],
    [toType('report', run), 'what happened to each row'],
    ['npm test', 'the tests'],
  ] as const;
  const width = Math.max(...steps.map(([command]) => textWidth(command)));
  return ['\nNext', ...steps.map(([command, does]) => `  ${padded(command, width)}   ${does}`)];
}

/** Number of objects in the sandbox of the quickstart. */
const heldObjects = 2_000;

const listed = 1_940; // number of those that are listed; the others must remain
const alreadyGone = 40; // number of ids that are listed but missing in the sandbox
const listedTwice = 12;

/** Cells that spreadsheets and joined exports produce. */
const unusable = ['', '..', ' a-000017', 'a-000018 ', '1.2E+05', 'a-000019/comments', 'a-000020?force=true', 'id'];

/** The sample list, and the expected results of its rows. */
type SampleList = { csv: string; rows: number; listedIds: string[]; otherIds: string[]; unusableRows: number };

/** Makes 2,000 rows like an export: some ids are listed twice, some are gone already, some are invalid. Always the same rows. */
function makeSampleList(): SampleList {
  const ids = Array.from({ length: heldObjects + alreadyGone }, (_, i) => madeId(resource, i + 1));
  const otherIds = ids.slice(listed, heldObjects);
  const listedIds = scatter(ids.slice(0, listed), ids.slice(heldObjects)); // next to each other, they would look like an unavailable API
  const twice = Array.from({ length: listedTwice }, (_, i) => listedIds[(i + 1) * 150]!);
  const cells = scatter(listedIds, [...twice, ...unusable]);
  const csv = ['id,author,last_opened', ...cells.map(rowOf), ''].join('\n');
  return { csv, rows: cells.length, listedIds, otherIds, unusableRows: unusable.length };
}

/** Spreads the extras evenly over the ids, from the middle on. */
function scatter(ids: string[], extras: string[]): string[] {
  const cells = [...ids];
  const gap = Math.floor(ids.length / 2 / extras.length);
  for (const [i, extra] of extras.entries()) cells.splice(ids.length / 2 + i * gap, 0, extra);
  return cells;
}

const authors = ['ana', 'bo', 'chen', 'dmitri', 'esi'];

function rowOf(id: string, index: number): string {
  const day = utcTime(Date.UTC(2019, 0, 1 + (index % 700)), 'day');
  return `${id},${authors[index % authors.length]},${day}`;
}
