import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Invocation } from '../../../src/commands/command.ts';
import { readCommandLine } from '../../../src/commands/line/command-line.ts';
import { execute } from '../../../src/commands/line/show-help.ts';
import { topicNames, topics } from '../../../src/help/topics.ts';

/** Prints a topic on a terminal of so many columns, or into a pipe, and returns what came out there. */
async function print(topic: string, env: NodeJS.ProcessEnv, terminal: { isTTY?: boolean; columns?: number } = {}) {
  let printed = '';
  const stdout = new Writable({
    write: (chunk, _encoding, done) => {
      printed += chunk;
      done();
    },
  });
  Object.assign(stdout, terminal);
  const code = await execute({ args: [topic], env, stdout } as unknown as Invocation);
  expect(code).toBe(0);
  return stripVTControlCharacters(printed);
}

/** What was written instead of a call. */
function written(...argv: string[]): string {
  let text = '';
  const call = readCommandLine(argv, '1.0.0', (part) => {
    text += part;
  });
  expect(call).toBeNull();
  return text;
}

describe('expunge help', () => {
  test('prints a topic into a pipe as plain text, in the columns that are asked for', async () => {
    const text = await print('rates', { ...process.env, COLUMNS: '60' });
    expect(text).toMatch(/^Rates: how fast ids are deleted/);
    expect(text).toContain('\nYou do not have to set a rate: expunge finds the limit of\nthe API');
  });

  test('hands a topic to the pager of a terminal, in its width', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'expunge-help-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const env = { ...process.env, TERM: 'xterm', PAGER: `cat > ${folder}/paged` };
    expect(await print('rates', env, { isTTY: true, columns: 90 })).toBe('');
    const paged = stripVTControlCharacters(readFileSync(`${folder}/paged`, 'utf8'));
    expect(paged).toMatch(/^Rates: how fast ids are deleted/);
    const wrapped = paged.split('\n').filter((line) => !line.startsWith('    ')); // lines of code are not
    const widest = Math.max(...wrapped.map((line) => line.length));
    expect([widest > 80, widest <= 90]).toEqual([true, true]);
  });

  test.each([
    ['is missing', 'expunge-has-no-such-pager'],
    ['is switched off', ''],
  ])('prints a topic on a terminal whose pager %s', async (_, PAGER) => {
    const text = await print('json', { ...process.env, TERM: 'xterm', PAGER }, { isTTY: true, columns: 80 });
    expect(text).toContain('The summary'.toUpperCase());
  });

  test('lists commands and topics', () => {
    const text = written('help');
    expect(text).toMatch(/^ {2}run <files\.\.\.> /m);
    const listed = text.replace(/\s+/g, ' ');
    for (const name of topicNames) expect(listed).toContain(` ${name} ${topics[name]} `);
  });

  test('leads from tasks to commands: examples first, then the commands below headings, the options after them', () => {
    const text = written('help');
    const headings = [...text.matchAll(/^([A-Z][^:\n]*):/gm)].map(([, heading]) => heading);
    expect(headings.slice(0, 3)).toEqual(['Usage', 'Examples', 'Delete the ids of a list']);
    expect(headings.indexOf('Options')).toBeGreaterThan(headings.indexOf('Set up and try out'));
    expect(headings).not.toContain('Commands'); // a command without a task
    expect(written('help', 'schedule')).toMatch(/^Commands:\n {2}add /m);
  });

  test('of a command is its help; where a topic has the name of a command, the topic comes first', () => {
    expect(written('help', 'schedule', 'add')).toBe(written('schedule', 'add', '--help'));
    expect(written('help', 'run', '--all')).toBe(written('run', '--help', '--all'));
    expect(readCommandLine(['help', 'redis'], '1.0.0', () => {})).toMatchObject({
      commandName: 'help',
      args: ['redis'],
    });
  });

  test.each([
    ['ratez', 'no such topic or command: ratez. Did you mean rates?'],
    ['workrs', 'no such topic or command: workrs. Did you mean workers?'],
    ['statuss', 'no such topic or command: statuss. Did you mean status?'],
    ['everything', 'no such topic or command: everything.'],
  ])('of %s says what was meant', (name, message) => {
    expect(() => readCommandLine(['help', name], '1.0.0', () => {})).toThrow(
      expect.objectContaining({ code: 'USAGE', message, next: 'expunge help lists them' }),
    );
  });
});
