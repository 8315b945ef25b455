import { beforeAll, expect, test } from 'vitest';
import type { Command } from '../../../src/commands/command.ts';
import { commands } from '../../../src/commands/line/commands.ts';
import { readAudit, readTargetAudit } from '../../../src/ledger/audit.ts';
import { noteTarget } from '../../../src/ledger/known-targets.ts';
import { readRun } from '../../../src/ledger/run.ts';
import { readAudit as readScheduleAudit } from '../../../src/schedule/schedule-store.ts';
import { type Api, openApi, overServer } from '../../support/api.ts';
import { summaryIn } from '../../support/command.ts';
import { atEndOfTests } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';
import { liveRun } from '../../support/live-run.ts';
import { redisContent } from '../../support/redis-content.ts';
import { storeSchedule } from '../../support/schedules.ts';

// What a command does and says over a server is what it does and says beside Redis, which other tests hold it to. A line is split at its spaces.

/** Lines that only read, and their exit codes; 2 where the line is refused. */
const reads: [line: string, code: number][] = [
  ...[
    ['runs', 'runs --json', 'runs --sort failed --limit 1', 'runs --state paused', 'runs --list OLD'],
    ['runs --since 1970-01-02 --by nobody', 'status ENDED', 'status PART --json --audit --history'],
    ['status WAITING', 'status WAITING --json', 'status', 'status --audit', 'status --json'],
    ['report ENDED', 'report ENDED --format ndjson --only failed,rejected', 'report ENDED --spreadsheet-safe'],
    [
      'report ENDED -o out.csv --json',
      'report ENDED --verify',
      'report ENDED --verify --json',
      'report ENDED --join old.csv --resource annotations',
    ],
    ['report ENDED --join old.csv --only failed,rejected', 'explain annotations s-000003'],
    ['explain annotations s-000001 --json', 'schedule list', 'schedule list --json', 'schedule preview nightly'],
    ['schedule preview nightly --json --count 3', 'plans', 'plans show PLAN'],
  ]
    .flat()
    .map((line): [string, number] => [line, 0]),
  ['status ENDED --watch --json', 3], // it ends as the run did
  ...[
    ['explain views nowhere', 'explain wrong x', 'report ENDED --join other.csv', 'schedule preview night'],
    [
      'report ENDED --join old.csv --verify',
      'report ENDED --manifest m.json --only failed',
      'status none',
      'pause none',
    ],
    ['report none', 'plans show none'],
  ]
    .flat()
    .map((line): [string, number] => [line, 2]),
];

/** Lines that change something, in this order. Each is done to a run, a schedule, a plan and an account of its own, beside Redis and over the server. */
const changes: [line: string, code: number][] = [
  ['pause RUN', 0],
  ['pause RUN --json', 0],
  ['rate RUN 7/s', 0],
  ['rate RUN 7/s --json', 0],
  ['rate RUN none', 0],
  ['resume RUN --reason urgent', 0],
  ['resume RUN --json', 0],
  ['resume RUN --detach --max-deletes 9', 0],
  ['start-all', 0],
  ['stop-all --reason urgent', 0],
  ['stop-all --json', 0],
  ['status', 0],
  ['start-all --json', 0],
  ['start-all', 0],
  ['target limit 5/s,1000/day --reason agreed', 0],
  ['target limit 5/s,1000/day --json', 0],
  ['target release', 0],
  ['target forget-rate --json', 0],
  ['target limit much', 2],
  ['target grace 10min --reason agreed', 0],
  ['target grace 10min --json', 0],
  ['status', 0],
  ['target limit none --json', 0],
  ['target grace none', 0],
  ['target grace soon', 2],
  ['target acknowledge', 0],
  ['schedule pause nightly --reason audit', 0],
  ['schedule pause nightly --json', 0],
  ['schedule resume nightly', 0],
  ['schedule resume nightly --json', 0],
  ['schedule remove nightly --yes', 0],
  ['plans refuse PLAN --reason wrong', 0],
  ['plans withdraw PLAN --yes', 4],
  ['cancel RUN', 2],
  ['cancel RUN --yes', 0],
  ['cancel RUN --yes --json', 0],
  ['resume RUN', 2],
  ['rate RUN 1/s', 2],
  ['pause RUN', 2],
  ['rate RUN fast', 2],
  ['runs remove RUN --yes --json', 0],
];

/** Lines for which `changes` has no room, and which a token that may only read is refused. */
const others = [
  'run old.csv --resource annotations --detach --yes',
  'schedule add new --cron @daily --from expired --resource views --max-deletes 5',
  'plan other.csv --resource views',
  'retry ENDED --detach --yes',
  'runs remove ENDED --yes',
  'apply PLAN --yes --detach',
  'schedule run nightly',
];

type Names = Record<string, string>;
type Way = { api: Api; env: NodeJS.ProcessEnv; names: Names };

let here: Way;
let over: Way;
let elsewhere: Way; // the same things again, for what is changed over the server
const atEnd = atEndOfTests();

/** A server, and one of each thing that lines are about: a run that ended, and others that wait; a plan; a schedule. */
async function openThings(): Promise<{ api: Api; names: Names }> {
  const ids = makeIds('s', 20);
  const broken = (_: string, id: string) => (ids.indexOf(id) === 3 ? ('status-422' as const) : null);
  const options = { account: 'acme', objects: annotations(ids), faults: { script: broken } };
  const api = await openApi(atEnd, options);
  const { harness, redis, call } = api;
  const { target } = harness;
  await noteTarget(redis, target, Date.now());
  harness.file('old.csv', `id\n${ids.join('\n')}\n"two\nlines"\n${ids[0]}\n`);
  harness.file('other.csv', 'id\nnowhere\n');
  const ended = summaryIn(await harness.run(['old.csv', '--resource', 'annotations', '--yes', '--json'])).run;
  const waiting = await liveRun(harness, 's-waits', '--rate', '5/s');
  await harness.expunge(['pause', waiting, '--reason', 'too early']);
  await storeSchedule(harness, 'nightly', { heartbeat: 'https://hc.example.com/ping/secret-path' }, Date.now());
  const path = `/plans?target=${target.fp}&resource=views&wait=true`;
  const csv = { 'content-type': 'text/csv' };
  const { plan } = (await call('operate', path, { method: 'POST', raw: 'id\np-1\n', headers: csv })).body;
  const run = await liveRun(harness, 's-goes-on');
  const names = { ENDED: ended, PART: ended.slice(-4), WAITING: waiting, PLAN: plan, RUN: run, FP: target.fp };
  return { api, names: { ...names, URL: target.baseUrl } };
}

beforeAll(async () => {
  const things = await openThings();
  here = { ...things, env: { EXPUNGE_USER: 'test-operate' } };
  over = { ...things, env: await overServer(things.api, 'read') };
  const others = await openThings();
  elsewhere = { ...others, env: await overServer(others.api, 'operate') };
});

function done(line: string, { api, env, names }: Way) {
  const words = line.split(' ').map((word) => names[word] ?? word);
  return api.harness.expunge(words, { env });
}

/** What a command did and said, without its place, names and times. */
async function said(line: string, way: Way) {
  const { code, stdout, stderr } = await done(line, way);
  const plain = (text: string) =>
    Object.entries(way.names)
      .reduce((left, [name, value]) => left.replaceAll(value, name), text)
      .replace(/^(Redis|Server): .*\n/, '')
      .replace(/ and \d+ process(es)?\.$/m, ' and PROCESSES.') // those of an earlier line may still be on record
      .replace(/"processes":\d+/, '"processes":0')
      .replaceAll(/"(at|seconds|since|changed_at)":("[^"]*"|[\d.]+|null)/g, '"$1":""')
      .replaceAll(
        /(, )?[\d.]+ (m?s|min) ago|after [\d.]+ m?s|up to [\d.]+\/s|(\d{4}-\d\d-\d\d[T ])?\d\d:\d\d(:\d\d)?(\.\d+Z)?/g,
        'T',
      )
      .replaceAll('is alive, since T', 'is alive'); // said once it has been so for a while
  return { code, stdout: plain(stdout), stderr: plain(stderr) };
}

test.each(reads)('over a server as beside Redis: %s', async (line, code) => {
  const told = await said(line, over);
  expect(told).toEqual(await said(line, here));
  expect([told.code, (told.stdout + told.stderr).length > 5]).toEqual([code, true]);
  expect(told.stdout).not.toContain('secret-path');
});

test('no answer of the API has the URL of a heartbeat', async () => {
  const { text } = await over.api.call('read', `/targets/${over.names.FP}/schedules`);
  expect(text).toContain('"name":"nightly"');
  expect(text).not.toContain('secret-path');
});

test('a token that may only read changes nothing with any command, and is told which role that takes', async () => {
  const before = await redisContent(over.api.redis);
  const lines = changes.filter(([line, code]) => code === 0 && !/^status|remove RUN/.test(line)).map(([line]) => line);
  for (const line of [...lines, ...others])
    expect(await done(line, over), line).toMatchObject({
      code: 5,
      stdout: '',
      stderr: expect.stringMatching(/has the role "read", but this (request|command) requires "(operate|plan)"/),
    });
  expect(await redisContent(over.api.redis)).toBe(before);
});

test('no command reaches a target that the server does not know', async () => {
  for (const line of ['schedule list', 'stop-all', 'target limit 9/day', ...others.slice(0, 2)])
    expect(await done(`${line} --account nobody`, elsewhere), line).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('knows no target'),
    });
});

test('no command is done for a token that nobody made', async () => {
  const env = { ...elsewhere.env, EXPUNGE_SERVER_TOKEN: 'nobody-made-this-token' };
  const refused = await done('cancel RUN --yes', { ...elsewhere, env });
  expect(refused).toMatchObject({ code: 5, stderr: expect.stringContaining('EXPUNGE_SERVER_TOKEN') });
});

/** Who did what to a run, a schedule and a target, and why. */
async function trailsOf({ api: { redis }, names: { RUN, FP } }: Way) {
  const run = await readRun(redis, RUN!);
  const all = [
    run ? await readAudit(redis, run) : [],
    await readScheduleAudit(redis, FP!, 'nightly'),
    await readTargetAudit(redis, FP!),
  ];
  return all.map((trail) => trail.map(({ action, who, reason }) => `${action} ${who} ${reason}`));
}

test('over a server each action does and says what it does beside Redis, in the name of the token', async () => {
  for (const [line, code] of changes) {
    const told = await said(line, elsewhere);
    expect(told, line).toEqual(await said(line, here));
    expect(told.code, `${line}: ${told.stderr}`).toBe(code);
    expect(await trailsOf(elsewhere), line).toEqual(await trailsOf(here));
  }
  for (const { api, names } of [here, elsewhere]) expect(await readRun(api.redis, names.RUN!)).toBeNull();
});

/** Each command that can be done over a server, as it is typed. */
function named(all: readonly Command[], before = ''): string[] {
  return all.flatMap(({ name, overServer, subcommands = [] }) => [
    ...(overServer === undefined ? [] : [before + name]),
    ...named(subcommands, `${before}${name} `),
  ]);
}

test('there is a line for every command that can be done over a server', () => {
  const lines = [...reads, ...changes].map(([line]) => line).concat(others);
  expect(named(commands).filter((name) => !lines.some((line) => `${line} `.startsWith(`${name} `)))).toEqual([]);
});
