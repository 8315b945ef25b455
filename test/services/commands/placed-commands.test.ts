import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { quoteForShell } from '../../../src/model/shell-word.ts';
import { openApi } from '../../support/api.ts';
import { type AtEnd, type Harness, openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { bin, type Done, runProgram } from '../../support/processes.ts';
import { removeStateDir } from '../../support/redis.ts';

const launcher = fileURLToPath(new URL('../../../expunge', import.meta.url));
const ids = makeIds('p', 5);
const elsewhere = '/';

/** A shell in the folder of a list, or in another one, which knows nothing but the tokens; how the program is started; and flags of place. */
type Place = { shell(line: string, cwd?: string): Promise<Done>; program: string; flags: string; folder: string };

function placeIn({ folder, sandbox }: Harness, program: string, flags: string, tokens: NodeJS.ProcessEnv = {}): Place {
  const path = `${join(folder, 'bin')}:/usr/bin:/bin`;
  const env = { PATH: path, EXPUNGE_TOKEN: sandbox.token, EXPUNGE_USER: 'ana', ...tokens };
  const shell = (line: string, cwd = folder) => runProgram('/bin/sh', ['-c', line], { cwd, env });
  return { shell, program, flags, folder };
}

const targetOf = ({ sandbox, target }: Harness) => `--base-url ${sandbox.url} --account ${target.account}`;

/** A state folder with a blank in its name, which has a Redis of its own. */
async function openPrivate(atEnd: AtEnd) {
  const harness = await openHarness(atEnd, { objects: annotations(ids), faults: { script: failing } });
  const stateDir = join(harness.folder, 'my state');
  atEnd(() => removeStateDir(stateDir));
  harness.list(ids);
  return { harness, stateDir };
}

/** Every deletion of the first id is a conflict. */
const failing = (_: string, id: string) => (id === ids[0] ? 'status-409' : null);

async function openStateDir(atEnd: AtEnd): Promise<Place> {
  const { harness, stateDir } = await openPrivate(atEnd);
  return placeIn(harness, quoteForShell(launcher), `--state-dir ${quoteForShell(stateDir)} ${targetOf(harness)}`);
}

async function openConfig(atEnd: AtEnd): Promise<Place> {
  const { harness, stateDir } = await openPrivate(atEnd);
  const { sandbox, target, folder } = harness;
  const settings = harness.file(
    'settings.json',
    JSON.stringify({ stateDir, baseUrl: sandbox.url, account: target.account }),
  );
  mkdirSync(join(folder, 'bin'));
  symlinkSync(launcher, join(folder, 'bin', 'expunge'));
  return placeIn(harness, 'expunge', `--config ${settings}`);
}

async function openServer(atEnd: AtEnd): Promise<Place> {
  const { harness, redis, url, token } = await openApi(atEnd, { objects: annotations(ids) });
  await noteTarget(redis, harness.target, Date.now());
  harness.list(ids);
  const program = `${quoteForShell(process.execPath)} ${quoteForShell(bin)}`;
  const tokens = { EXPUNGE_SERVER_TOKEN: await token('operate') };
  return placeIn(harness, program, `--server ${url} ${targetOf(harness)}`, tokens);
}

/** The line with this command that a text tells the reader to type. */
function toldIn({ stdout, stderr }: Done, { program }: Place, command: string): string {
  const lines = `${stdout}\n${stderr}`.split(/\n|; or /);
  const told = lines.flatMap((line) => {
    const at = line.indexOf(`${program} ${command} `);
    return at === -1 ? [] : [line.slice(at)];
  });
  expect(told[0], `${program} ${command} in ${lines.join('\n')}`).toBeDefined();
  return told[0]!;
}

describe('what a command tells to type works where it was told, and in any other folder,', () => {
  test.for<[string, (atEnd: AtEnd) => Promise<Place>]>([
    ['with --state-dir, by the path of the program', openStateDir],
    ['with --config, through the PATH', openConfig],
    ['with --server, by node and the script', openServer],
  ])('%s', async ([, open], { onTestFinished }) => {
    const place = await open(onTestFinished);
    const { shell, program, flags } = place;
    const type = async (line: string, code = 0, cwd = elsewhere) => {
      const done = await shell(line, cwd);
      expect(done.code, `${line}\n${done.stdout}${done.stderr}`).toBe(code);
      return done;
    };
    const ran = await type(`${program} run list.txt --resource annotations --yes --detach ${flags}`, 0, place.folder);
    toldIn(ran, place, 'worker'); // a warning, which the server words with --server
    const watch = toldIn(ran, place, 'status');
    await type(`${toldIn(ran, place, 'pause').replace(' pause ', ' cancel ')} --yes`);
    const refused = await type(watch.replace(' status ', ' resume ').replace(' --watch', ''), 2); // the server words it with --server
    expect((await type(toldIn(refused, place, 'status'))).stdout).toContain('Cancelled');
    // Negative control: without its flags of place the same command finds nothing.
    const lost = await shell(watch.slice(0, watch.indexOf('--watch')), elsewhere);
    expect([lost.code === 0, lost.stdout.includes('Cancelled')]).toEqual([false, false]);
  });
});

test('so do the retry of a run that ended with failures, and what a failed check tells', async ({ onTestFinished }) => {
  const place = await openStateDir(onTestFinished);
  const { shell, program, flags, folder } = place;
  const ended = await shell(
    `${program} run list.txt --resource annotations --yes --on-status 409=failed ${flags}`,
    folder,
  );
  expect([ended.code, ended.stderr]).toEqual([3, expect.stringContaining('Retry the others: ')]);
  const retried = await shell(`${toldIn(ended, place, 'retry')} --yes --on-status 409=failed`, elsewhere);
  expect([retried.code, retried.stderr]).toEqual([3, expect.stringContaining('Retry of run')]);
  const checked = await shell(
    `${program} check --resource annotations --probe-id ${ids[0]} --yes --on-status 409=failed ${flags}`,
    folder,
  );
  expect(checked.code, checked.stdout).not.toBe(0);
  const verdicts = await shell(toldIn(checked, place, 'check'), elsewhere);
  expect([verdicts.code, verdicts.stdout]).toEqual([0, expect.stringContaining('409')]);
});
