import { describe, expect, onTestFinished, test } from 'vitest';
import { summaryIn } from '../../support/command.ts';
import { openHarness } from '../../support/harness.ts';
import { annotations, makeIds } from '../../support/ids.ts';

// What `--allow-empty` and `--max-deletes` refuse before anybody is asked and anything is sent.

const ids = makeIds('b', 15);
const kind = ['--resource', 'annotations'];

/** Some ids, a list of them, and what shows that a command was refused: exit 2, no run in Redis, and no request at the API. */
async function open() {
  const harness = await openHarness(onTestFinished, { objects: annotations(ids) });
  const list = harness.list(ids);
  const refuses = async (args: readonly string[], input = '') => {
    const before = [harness.sandbox.counts.requests, (await harness.runs()).map(({ id, state }) => [id, state])];
    const done = await harness.expunge(args, { input });
    expect([harness.sandbox.counts.requests, (await harness.runs()).map(({ id, state }) => [id, state])]).toEqual(
      before,
    );
    expect([done.code, done.stdout], done.stderr).toEqual([2, '']);
    return done.stderr;
  };
  const sent = () =>
    harness.sandbox.seen.map((path) => decodeURIComponent(path.slice(path.lastIndexOf('/') + 1))).sort();
  return { harness, list, refuses, sent };
}

describe('a list without a row', () => {
  test.each([
    ['nothing', 'none.txt', ''],
    ['blank lines', 'blank.txt', '\n\n\n'],
    ['a header alone', 'header.csv', 'id,name\n'],
    ['an empty CSV', 'empty.csv', ''],
    ['an empty array', 'empty.json', '[]'],
    ['no object', 'empty.ndjson', ''],
  ])('is refused by run, a dry run, --detach and plan, which name it: %s', async (_, name, text) => {
    const { harness, refuses } = await openIn(name, text);
    const words = `error: ${name}: the list is empty: 0 rows; nothing was sent\n  `;
    const advice = 'see why the export wrote nothing; if an empty list is normal, add --allow-empty\n';
    for (const more of [['--yes'], ['--dry-run'], ['--yes', '--detach'], ['--confirm', '0']])
      expect(await refuses(['run', name, ...kind, ...more])).toContain(words + advice);
    expect(await refuses(['plan', name, ...kind])).toContain(words + advice);
    const done = await harness.run([name, ...kind, '--yes', '--json', '--allow-empty']);
    expect([done.code, summaryIn(done)]).toMatchObject([0, { state: 'completed', rows: 0 }]);
    expect(done.stderr).toContain('The list is empty: 0 rows. --allow-empty accepts that.\n');
    expect(await refuses(['run', name, ...kind, '--yes'])).toContain(words); // the run of it that is over changes nothing
  });

  test('is refused on stdin with what shows a failed export', async () => {
    const { refuses } = await open();
    const told = await refuses(['run', '-', ...kind, '--yes']);
    expect(told).toContain('error: (stdin): the list is empty: 0 rows; nothing was sent\n');
    expect(told).toContain('if an empty list is normal: set -o pipefail, so that a failed export still counts');
  });

  test('names all of its files', async () => {
    const { harness, refuses } = await open();
    for (const name of ['a.txt', 'b.txt']) harness.file(name, '');
    expect(await refuses(['run', 'a.txt', 'b.txt', ...kind, '--yes'])).toContain('error: a.txt, b.txt: the list is');
    const both = await harness.run(['a.txt', harness.list(ids.slice(0, 1)), ...kind, '--yes']);
    expect(both.code, both.stderr).toBe(0);
  });

  test('is accepted by the configuration file, and by a plan, which says so to whoever applies it', async () => {
    const { harness } = await open();
    harness.file('none.txt', '');
    harness.file('expunge.json', '{"allowEmpty": true}');
    const dry = await harness.run(['none.txt', ...kind, '--dry-run', '--config', 'expunge.json']);
    expect(dry.code, dry.stderr).toBe(0);
    const planned = await harness.expunge(['plan', 'none.txt', ...kind, '--allow-empty', '--json']);
    expect(JSON.parse(planned.stdout)).toMatchObject({ rules: { allowEmpty: 'true' } });
    const { plan } = JSON.parse(planned.stdout);
    expect((await harness.expunge(['apply', plan, '--yes'])).code).toBe(0);
  });
});

/** The same with a file in the folder. */
async function openIn(name: string, text: string) {
  const opened = await open();
  opened.harness.file(name, text);
  return opened;
}

describe('a list with rows, none of which is sent, is not empty', () => {
  test.each([
    ['protected', ['--protect', 'keep.txt'], `${ids[0]}\n${ids[1]}\n`, 0],
    ['rejected', [], 'a b#\n..\n', 3],
  ])('although all of them are %s', async (outcome, more, text, exit) => {
    const { harness, sent } = await openIn('list.txt', text);
    harness.file('keep.txt', `${ids[0]}\n${ids[1]}\n`);
    const done = await harness.run(['list.txt', ...kind, ...more, '--yes', '--json']);
    expect([done.code, summaryIn(done)], done.stderr).toMatchObject([exit, { rows: 2, [outcome]: 2 }]);
    expect(sent()).toEqual([]);
  });
});

describe('a list with more ids than --max-deletes', () => {
  const words = 'error: the list holds 15 ids, --max-deletes allows 10; nothing was sent\n';
  const ten = ['--max-deletes', '10'];

  test.each([
    ['run', ['--yes']],
    ['run that is not confirmed', []],
    ['a dry run', ['--dry-run']],
    ['run --detach', ['--yes', '--detach']],
  ])('is refused before anybody is asked: %s', async (_, more) => {
    const { refuses, list } = await open();
    const told = await refuses(['run', list, ...kind, ...ten, ...more]);
    expect(told).toContain(words);
    expect(told).toContain('to send a part of it on purpose: --partial for the first 10 ids, or --limit 10\n');
    expect(told).not.toContain('Target'); // no plan is shown
  });

  test('is sent in part with --partial, which halts; a higher number goes on to the end', async () => {
    const { harness, list, refuses, sent } = await open();
    const line = [list, ...kind, '--yes'];
    const dry = await harness.run([...line, ...ten, '--partial', '--dry-run']);
    expect([dry.code, dry.stdout]).toEqual([0, expect.stringMatching(/^ {2}At most {3}10 ids are sent, the first/m)]);
    const part = await harness.run([...line, ...ten, '--partial']);
    expect([part.code, part.stderr]).toEqual([4, expect.stringContaining('as many as --max-deletes allows')]);
    expect(sent()).toEqual(ids.slice(0, 10));
    expect(await refuses(['run', ...line, '--max-deletes', '12'])).toContain('the list holds 15 ids, --max-deletes');
    expect((await harness.run([...line, '--max-deletes', '12', '--partial'])).code).toBe(4);
    expect(sent()).toEqual(ids.slice(0, 12));
    const whole = await harness.run([...line, '--max-deletes', '15']);
    expect(whole.code, whole.stderr).toBe(0);
    expect(sent()).toEqual(ids);
    expect(await harness.runs()).toHaveLength(1);
  });

  test('is raised by resume, which says a number of its own', async () => {
    const { harness, list, sent } = await open();
    await harness.run([list, ...kind, '--yes', '--detach', '--rate', '1000/s', ...ten, '--partial']);
    await harness.worker();
    const { id } = await harness.runIs('halted', ({ state }) => state === 'halted');
    const more = await harness.expunge(['resume', id, '--max-deletes', '12']);
    expect(more.code, more.stderr).toBe(0);
    await harness.runIs('halted again', ({ state, settled }) => state === 'halted' && settled === 12);
    expect(sent()).toEqual(ids.slice(0, 12));
  });

  test('is refused also where it is the unfinished run of a command without that bound', async () => {
    const { harness, list, refuses } = await open();
    await harness.run([list, ...kind, '--yes', '--detach']);
    expect(await refuses(['run', list, ...kind, '--yes', '--detach', ...ten])).toContain(words);
    expect((await harness.onlyRun()).maxDeletes).toBeNull();
  });

  test('counts the ids that are sent: neither duplicates nor protected ones', async () => {
    const { harness } = await open();
    const list = harness.file('twice.txt', [...ids, ...ids].map((id) => `${id}\n`).join(''));
    const keep = harness.file(
      'keep.txt',
      ids
        .slice(10)
        .map((id) => `${id}\n`)
        .join(''),
    );
    const done = await harness.run([list, ...kind, '--yes', '--protect', keep, ...ten]);
    expect(done.code, done.stderr).toBe(0);
    expect(harness.sandbox.remaining()).toBe(5);
  });

  test('becomes no plan; that of a part is applied as it was sealed', async () => {
    const { harness, list, refuses, sent } = await open();
    const line = ['plan', list, ...kind, ...ten];
    expect(await refuses(line)).toContain(words);
    const planned = await harness.expunge([...line, '--partial', '--json']);
    const { plan, requests } = JSON.parse(planned.stdout);
    expect(requests).toBe(10);
    expect((await harness.expunge(['apply', plan, '--yes'])).code).toBe(4);
    expect(sent()).toEqual(ids.slice(0, 10));
  });

  test('is refused by retry, too', async () => {
    const { harness, list, refuses, sent } = await open();
    await harness.run([list, ...kind, '--yes', '--detach']);
    const { id } = await harness.onlyRun();
    expect((await harness.expunge(['cancel', id, '--yes'])).code).toBe(0);
    for (const more of [['--yes'], ['--dry-run'], ['--yes', '--detach']])
      expect(await refuses(['retry', id, ...ten, ...more])).toContain(words);
    expect((await harness.expunge(['retry', id, ...ten, '--yes', '--partial'])).code).toBe(4);
    expect(sent()).toEqual(ids.slice(0, 10));
  });
});
