import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Command } from '../../src/commands/command.ts';
import { commands } from '../../src/commands/line/commands.ts';
import { furtherReading } from '../../src/commands/line/help.ts';
import { flagSettings, settings } from '../../src/config/settings.ts';
import { type Cell, doubt, mark, mergeResult, settle, untouched } from '../../src/ledger/cell.ts';
import { runStates } from '../../src/ledger/run.ts';
import { codeOfStatus, outcomes, rankOf, sentOutcomes } from '../../src/model/outcome.ts';
import { resources } from '../../src/model/resource.ts';
import { keys } from '../../src/redis/keys.ts';
import { architecturePages, pages, readPage } from '../support/docs.ts';
import { invariantsOf, readInvariants, tagsOf } from '../support/invariants.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

type Source = { path: string; text: string; imports: string[]; lines: number };

const sources: Source[] = readdirSync(`${root}src`, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !/\.(md|json)$/.test(entry.name))
  .map((entry) => read(relative(root, `${entry.parentPath}/${entry.name}`).replaceAll('\\', '/')));

function read(path: string): Source {
  const text = readFileSync(root + path, 'utf8');
  const found = text.matchAll(/^(?:import|export)\b[^;]*?from '([^']+)'|\bimport\('([^']+)'\)|^import '([^']+)'/gm);
  const imports = [...found].map(([, a, b, c]) => resolved(path, a ?? b ?? c ?? ''));
  return { path, text, imports, lines: text.split('\n').length - 1 };
}

/** A path from the root for our own files, the name of the package for all else. */
function resolved(path: string, specifier: string): string {
  return specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : specifier;
}

/** The code alone. No string of ours holds two slashes but those of addresses. */
function withoutComments(text: string): string {
  return text.replace(/\/\*.*?\*\//gs, '').replace(/(?<!:)\/\/.*/g, '');
}

/** Files that match and import something that matches: `file → import`. */
function importing(from: RegExp, what: RegExp): string[] {
  return sources
    .filter(({ path }) => from.test(path))
    .flatMap(({ path, imports }) => imports.filter((name) => what.test(name)).map((name) => `${path} → ${name}`));
}

function containing(from: RegExp, what: RegExp): string[] {
  return sources.filter(({ path, text }) => from.test(path) && what.test(text)).map(({ path }) => path);
}

const { floors }: { floors: string[] } = await import(`${root}.dependency-cruiser.mjs`);

function floorOf(path: string): number {
  return floors.findIndex((floor) => new RegExp(floor).test(path));
}

/** What documents commands: their examples are the same for everybody. */
const isHelp = /^src\/(commands\/line\/(.*-commands|completion|help)\.ts$|help\/)/;

/** Commands and their subcommands. */
function allCommands(commands: readonly Command[]): Command[] {
  return commands.flatMap((command) => [command, ...allCommands(command.subcommands ?? [])]);
}

/** What loading a file loads: neither what it imports for its types nor what it imports when it is needed. */
function loadedBy(text: string, imports: readonly string[]): string[] {
  const later = new Set(
    [...text.matchAll(/^import type .*?from '([^']+)'|\bimport\('([^']+)'\)/gms)].map((found) => found[1] ?? found[2]),
  );
  return imports.filter(
    (name) =>
      ![...later].some((path) => path !== undefined && (path === name || name.endsWith(path.replace(/^[./]+/, '/')))),
  );
}

/** Packages that take longer to load than all else that a short command does; it has to work within a second on any machine. */
const heavy = ['bullmq', 'undici', 'pino'];

/** All that is loaded with these files of `src/`. */
function reachedFrom(names: readonly string[]): Set<string> {
  const graph = new Map(sources.map(({ path, text, imports }) => [path, loadedBy(text, imports)]));
  const reached = new Set(names.map((name) => `src/${name}.ts`));
  for (const path of reached) for (const next of graph.get(path) ?? []) reached.add(next);
  return reached;
}

describe('the sources', () => {
  it('are read by these tests', () => {
    expect(sources.length).toBeGreaterThan(100);
    expect(importing(/^src\/queue\/queue\.ts$/, /^bullmq$/)).toHaveLength(1);
    expect(importing(/^src\/commands\/line\/run-commands\.ts$/, /^src\/commands\/runs\/run\.ts$/)).toHaveLength(1);
  });

  it('send no request with what Node has built in', () => {
    expect(containing(/^src\/(?!sandbox\/|dashboard\/)/, /\bfetch\(|from 'node:https?'/)).toEqual([]);
  });

  it('of the pages import nothing but each other, what browsers load, and types', () => {
    expect(importing(/^src\/dashboard\//, /^(?!src\/(dashboard|api)\/|\/assets\/(lit-html|model)\/|uplot$)/)).toEqual(
      [],
    );
    expect(importing(/^src\/dashboard\/app\.ts$/, /^src\/dashboard\/parts\.ts$/)).toHaveLength(1);
    const isFromElsewhere = (what: string) => new RegExp(`^${what}[^;]*?from '(\\.\\./|uplot)`, 'm');
    expect(containing(/^src\/dashboard\//, isFromElsewhere('import (?!type )'))).toEqual([]);
    expect(containing(/^src\/dashboard\/(types|plot)\.ts$/, isFromElsewhere('import type '))).toHaveLength(2);
  });

  it('of the pages write text through one file, which makes invisible characters visible', () => {
    const others = /^src\/dashboard\/(?!markup\.ts$)/;
    expect(importing(others, /lit-html/)).toEqual([]);
    const pages = sources.filter(({ path }) => others.test(path));
    const written = pages.flatMap(({ text }) => text.match(/\b(?:innerHTML|textContent|document\.title) = .*/g) ?? []);
    expect(written).toHaveLength(2);
    expect(written.filter((line) => !line.includes('visible('))).toEqual([]);
  });

  it.each([
    [
      'an action on a target',
      ['commands/actions/stop-all', 'commands/actions/target', 'operations/local-targets'],
      heavy,
    ],
    ['an action on a run', ['commands/actions/steer', 'commands/actions/rate', 'operations/local'], heavy],
    ['a list of runs', ['commands/evidence/runs', 'operations/local-records'], heavy],
    ['a status', ['commands/evidence/status', 'operations/local-records', 'operations/local-targets'], heavy],
    ['a list of schedules', ['commands/schedules/schedule-list', 'operations/local-schedules'], heavy],
    ['a list of plans', ['commands/runs/plans', 'operations/local-plans'], heavy],
    [
      'help and settings',
      ['commands/line/show-help', 'commands/line/completion', 'commands/setup/config'],
      [...heavy, 'ioredis'],
    ],
    ['a dry run', ['commands/runs/run', 'operations/dry-plan'], heavy],
    ['a run', ['commands/runs/run', 'commands/runs/run-list'], ['zod', 'hono']],
  ])('of %s load no package that only others need', (_, names, unused) => {
    const reached = reachedFrom(['commands/line/cli', ...names]);
    expect(unused.filter((name) => reached.has(name))).toEqual([]);
  });

  it('of a worker load what most commands must not', () => {
    const reached = reachedFrom(['commands/processes/worker']);
    expect(heavy.filter((name) => !reached.has(name))).toEqual([]);
  });

  it('of the pipeline see neither arguments nor environment', () => {
    expect(
      containing(
        /^src\/(input|guard|token|limiter|delete|report|history|lookup|ledger)\//,
        /process\.(env|argv)|from 'node:process'/,
      ),
    ).toEqual([]);
  });

  it('name a resource in the table of resources only: else one more would be forgotten there', () => {
    const named = new RegExp(`'(?:${resources.join('|')})'|\\.(?:${resources.join('|')})\\b`);
    expect(named.test("ids.views + ids['annotations']")).toBe(true);
    expect(sources.filter(({ text }) => named.test(withoutComments(text))).map(({ path }) => path)).toEqual([
      'src/model/resource.ts',
    ]);
  });

  it('list and add up outcomes by the table of outcomes only: else one more would be missing there', () => {
    const word = `(?:${outcomes.join('|')})`;
    const listed = new RegExp(`'${word}'\\s*(?:,|\\||&&)[^'\\n]*'${word}'|\\.${word} \\+ [\\w.]*\\.${word}\\b`);
    for (const text of [
      "x === 'failed' || x === 'unknown'",
      "['absent', 'deleted']",
      'run.failed + run.counts.unknown',
    ])
      expect(listed.test(text)).toBe(true);
    const elsewhere = /^src\/(model\/|queue\/queue\.ts$)/; // states of a job have the same words
    const found = sources.filter(({ path, text }) => !elsewhere.test(path) && listed.test(withoutComments(text)));
    expect(found.map(({ path }) => path)).toEqual([]);
  });

  it('take every setting as a flag of a command that uses it, and read it', () => {
    const names = flagSettings;
    const taken = new Set(
      allCommands(commands).flatMap((command) => (command.settings.length === names.length ? [] : command.settings)), // not by `config show`
    );
    expect(names.filter((name) => !taken.has(name))).toEqual([]);
    const lists =
      /^src\/(config\/(?:run-|process-|service-)?settings|commands\/(command|line\/(?:commands|[a-z]+-commands|help))|schedule\/schedule)\.ts$/;
    const readers = sources.filter(({ path }) => !lists.test(path)).map(({ text }) => withoutComments(text));
    const isRead = (name: string) => readers.some((text) => new RegExp(`\\b${name}\\b`).test(text));
    expect(Object.keys(settings).filter((name) => !isRead(name))).toEqual([]);
    expect(isRead('noSuchSetting')).toBe(false);
  });

  it('show every command by examples of it, and name it on a page for users', () => {
    const loaded = allCommands(commands).filter(({ load }) => load !== null);
    expect(loaded.filter(({ examples }) => examples.length === 0).map(({ name }) => name)).toEqual([]);
    const text = pages.map(readPage).join('\n');
    const hidden = commands.filter((command) => command.hidden === true);
    const shown = commands.filter((command) => !hidden.includes(command)).map(({ name }) => name);
    expect(shown.filter((name) => !new RegExp(`(?:expunge |^\\| \`)${name}\\b`, 'm').test(text))).toEqual([]);
  });

  it('have every command that is declared among the commands, and name for each one shown what to read further, or nothing', async () => {
    const declaring = sources.filter(({ path }) => /^src\/commands\/line\/[a-z]+-commands\.ts$/.test(path));
    const modules = await Promise.all(declaring.map(({ path }) => import(root + path)));
    const declared = modules.flatMap((module) => Object.values<Command>(module));
    expect(declared.map(({ name }) => name).sort()).toEqual(commands.map(({ name }) => name).sort());
    const shown = commands.filter((command) => command.hidden !== true).map(({ name }) => name);
    expect(Object.keys(furtherReading).sort()).toEqual(shown.sort());
  });

  it('know the numbers of a cell by their names, in Lua as well', () => {
    const numbers = /\b(?:8192|16384|24576|32768|4096|0x2000)\b|>> ?13\b|& ?511\b|% ?512\b/;
    expect(containing(/^src\/(report|history|lookup|ledger|delete)\//, numbers)).toEqual([]);
    expect(numbers.test('new < 8192')).toBe(true);
  });

  it('compare a status with the table of statuses only: else another meaning of it would be missed there', () => {
    const compared = /\bstatus\w*\s*[!=<>]=*\s*(?:204|[45]\d\d)\b/i;
    expect(compared.test('if (answer.status >= 500)')).toBe(true);
    const ours = /^src\/(delete|limiter|report|history|lookup|ledger|worker|terminal|commands|model)\//; // other protocols have other meanings
    expect(
      sources
        .filter(({ path, text }) => ours.test(path) && compared.test(withoutComments(text)))
        .map(({ path }) => path),
    ).toEqual(['src/model/outcome.ts']); // the bounds of what a cell can hold
    const throttling = sources
      .filter(({ path, text }) => !path.startsWith('src/api/') && /\b429\b/.test(withoutComments(text))) // its own answers
      .map(({ path }) => path);
    expect(throttling).toEqual(['src/model/status.ts']);
  });

  it('never show a code of the system instead of words', () => {
    expect(containing(/^src\//, /\$\{[^}]*\bsystemCode\(/)).toEqual([]);
  });

  it('end the process in one file, at a second signal, and at one before any command listens', () => {
    const ending = ['src/bin.js', 'src/commands/interrupts.ts', 'src/commands/line/cli.ts'];
    expect(containing(/^src\//, /\b(process|source)\.exit\(/)).toEqual(ending);
  });

  it('spread no literal: an object that is put together so takes a field that nothing reads, and nobody says so', () => {
    const spread = /\.\.\.\s*\(?\{/;
    expect(spread.test("route({ ...{ method: 'post', isCreatng: true } })")).toBe(true);
    expect(spread.test('list({ ...({ stats: state } as Choice) })')).toBe(true);
    expect(containing(/^src\//, spread)).toEqual([]);
    const tests = readdirSync(`${root}test`, { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.ts'),
    );
    const found = tests.filter((path) => spread.test(readFileSync(`${root}test/${path}`, 'utf8')));
    expect(found).toEqual(['unit/tidy.test.ts']);
  });

  it('write what reaches a terminal through the streams that make it safe only', () => {
    const beside = /\bprocess\.std(?:out|err)\b|\bconsole\.\w|\bbareOutput\(|\bwriteSync\(\s*[12]\b|from 'node:tty'/;
    for (const text of ['process.stderr.write(x)', 'console.log(x)', 'bareOutput(stderr).write(x)', 'writeSync(2, x)'])
      expect(beside.test(text)).toBe(true);
    expect(
      sources
        .filter(({ path, text }) => beside.test(withoutComments(text)) && !/^src\/dashboard\//.test(path))
        .map(({ path }) => path),
    ).toEqual([
      'src/bin.js', // it says that Node is too old
      'src/terminal/ask.ts', // these two move the cursor, around text that is safe
      'src/terminal/live-panel.ts',
      'src/terminal/safe-output.ts', // data in a pipe
      'src/commands/line/cli.ts', // it opens them
      'src/commands/line/help.ts', // it only asks for the width
    ]);
    const own = /\\u001b\[|\\x1b|styleText\(|stream: process/;
    const steering = sources.filter(
      ({ path, text }) => own.test(withoutComments(text)) && path !== 'src/terminal/safe-output.ts',
    );
    expect(steering.map(({ path }) => path)).toEqual(['src/terminal/style.ts']);
  });

  it('decide in one place how characters that cannot be seen are stored and shown', () => {
    const classes = /\\p\{(?:Cc|Cf|C|Default_Ignorable_Code_Point|Bidi_Control)\}|\\u202[a-e]|\\u200[b-f]|\\ufeff/i;
    expect(classes.test('/[\\p{Cc}\\p{Cf}]/u')).toBe(true);
    const shown = sources.filter(({ path }) => /^src\/(?!input\/|token\/|delete\/|model\/|[a-z-]+\.ts$)/.test(path)); // those take or refuse texts
    const found = shown.filter(({ text }) => classes.test(withoutComments(text)));
    expect(found.map(({ path }) => path)).toEqual([]);
  });

  it('write a command to type by the one function that knows how its reader starts it', () => {
    const names = allCommands(commands).map(({ name }) => name);
    const handMade = new RegExp(`expunge (${names.join('|')})\\b`, 'g');
    const found = sources
      .filter(({ path }) => /^src\/(?!dashboard\/|sandbox\/).*\.ts$/.test(path) && !isHelp.test(path))
      .flatMap(({ path, text }) => [...withoutComments(text).matchAll(handMade)].map(([words]) => `${path}: ${words}`));
    expect("next: 'see expunge status r1'".match(handMade)).toEqual(['expunge status']);
    expect(found).toEqual([
      'src/config/process-settings.ts: expunge token', // these only name a command
    ]);
  });

  it('write one for anybody only where nobody knows its reader: in what is served, logged, sent or stored', () => {
    const forAnybody = containing(/^src\//, /\b(toTypeAnywhere|typedLine)\b/);
    expect(forAnybody.filter((path) => !/^src\/(api|worker)\//.test(path))).toEqual([
      'src/errors.ts',
      'src/model/to-type.ts',
      'src/notify/events.ts', // what is sent
      'src/terminal/render-markdown.ts', // pages
      'src/commands/line/place.ts',
      'src/commands/setup/check.ts', // its JSON
      'src/commands/setup/quickstart.ts', // the line that it runs itself
    ]);
  });

  it('name only files that exist in their comments', () => {
    const named = sources.flatMap(({ path, text }) =>
      [...text.matchAll(/\/\*[\s\S]*?\*\/|(?:^|\s)\/\/ .*$/gm)].flatMap(([comment]) =>
        [...comment.matchAll(/[\w/-]+(?:\.lua)?\.ts\b/g)].map(([name]) => ({ path, name })),
      ),
    );
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter(({ name }) => !sources.some(({ path }) => path.endsWith(`/${name}`)))).toEqual([]);
  });

  it('have no index, and no word for what has no name', () => {
    expect(sources.filter(({ path }) => /\/(index|utils?|helpers?|common|misc)\.[jt]s$/.test(path))).toEqual([]);
  });
});

/** The pages about the architecture, by their paths. Paths that a page names are below its folder, `src/` or the root. */
const architecture: ReadonlyMap<string, string> = new Map(architecturePages.map((path) => [path, readPage(path)]));

/** What a page has in backticks. */
const namesIn = (text: string) => [...text.matchAll(/`([^`\n]+)`/g)].map(([, name]) => name!);

const code = (text: string) => `\`${text}\``;

const isPath = (name: string) => /^[a-z][\w./-]*(\/|\.(ts|js|json|md|yml))$/.test(name);

/** The paths that a page names and that are not there. */
function missingFrom(path: string, text: string): string[] {
  const folders = [`${posix.dirname(path)}/`, 'src/', ''];
  return namesIn(text).filter((name) => isPath(name) && !folders.some((folder) => existsSync(root + folder + name)));
}

/** A key with the names of its parameters in place of their values. */
function patternOf(key: string | ((...parts: never[]) => string)): string {
  if (typeof key === 'string') return key;
  const [, parameters = ''] = /^\(?([\w, ]*?) *\)? *=>/.exec(String(key)) ?? [];
  return key(...(parameters.split(/ *, */).map((name) => `<${name}>`) as never[]));
}

/** The cells of the rows of all tables of a page, without those above the lines of dashes. */
function rowsOf(text: string): string[][] {
  const lines = text.split('\n');
  const rows = lines.filter((line, n) => line.startsWith('| ') && !/^\|-/.test(lines[n + 1] ?? ''));
  return rows.map((row) => row.slice(1, -1).split('|')).map((cells) => cells.map((cell) => cell.trim()));
}

describe.each([...architecture])('the architecture in %s', (path, text) => {
  it('names paths that exist', () => {
    expect(missingFrom(path, text)).toEqual([]);
  });
});

describe('the architecture', () => {
  const page = (path: string) => architecture.get(path)!;

  it('is on pages that name many paths, each linked from the first page', () => {
    expect(namesIn(page('src/README.md')).filter(isPath).length).toBeGreaterThan(100);
    expect(namesIn(page('src/limiter/README.md')).filter(isPath).length).toBeGreaterThan(20);
    const others = [...architecture.keys()].filter((path) => path !== 'src/README.md');
    expect(others).toContain('src/ledger/README.md');
    expect(others.filter((path) => !page('src/README.md').includes(`](${path.slice('src/'.length)})`))).toEqual([]);
    expect(missingFrom('src/ledger/README.md', '`cell.ts` `model/outcome.ts` `package.json` `no/such.ts`')).toEqual([
      'no/such.ts',
    ]);
  });

  it('names every folder of the sources, with its floor', () => {
    const folders = new Set(sources.map(({ path }) => `${posix.dirname(path).slice('src/'.length)}/`));
    folders.delete('/');
    expect(folders.size).toBeGreaterThan(10);
    const rows = rowsOf(page('src/README.md').split('## Folders')[1]!.split('\n## ')[0]!);
    const named = rows.flatMap(([floor, cell]) => namesIn(cell!).map((name) => [name, Number(floor)] as const));
    expect([...folders].filter((folder) => !named.some(([name]) => name === folder))).toEqual([]);
    const file = (name: string) => (name.endsWith('/') ? `src/${name}file.ts` : `src/${name}`);
    expect(named.filter(([name, floor]) => floorOf(file(name)) !== floor)).toEqual([]);
  });

  it('names every key in Redis, and as writers files that write keys', () => {
    const text = page('src/redis/README.md');
    const rows = rowsOf(text);
    const { queuePrefix, ...others } = keys;
    expect([code('queuePrefix'), code(patternOf(queuePrefix))].filter((name) => !text.includes(name))).toEqual([]);
    const made = Object.entries(others).map(([name, key]) => [name, patternOf(key)].map(code).join());
    expect(made).toContain('`manifest`,`expunge:{<run>}:m:<n>`');
    expect(rows.map((cells) => cells.slice(0, 2).join()).sort()).toEqual(made.sort());
    const writers = rows.flatMap((cells) => namesIn(cells[4]!));
    expect(writers.filter((path) => !/\bkeys\b/i.test(readPage(`src/${path}`)))).toEqual([]);
  });

  it('names every outcome with its rank and its proof, and has a row for every run state and what moves a run there', () => {
    const text = page('src/ledger/README.md');
    expect(outcomes.filter((outcome) => !namesIn(text).includes(outcome))).toEqual([]);
    expect(text.replaceAll('\n', ' ')).toContain(
      `${sentOutcomes.map((name) => `${code(name)} ${rankOf(name)}`).join(', ')}.`,
    );
    const proofs = readPage('src/help/guarantees.md').split('## What each outcome proves')[1]!.split('\n## ')[0]!;
    expect(sentOutcomes.filter((name) => !proofs.includes(`- ${code(name)}: `))).toEqual([]);
    const moved = rowsOf(text.split('## Run states')[1]!.split('\n## ')[0]!).map(([state]) => state);
    expect(moved).toEqual(runStates.map((state) => `\`${state}\``));
  });

  it('shows cells as the code makes them', () => {
    const marked = mark(untouched);
    const gone = settle('gone_unconfirmed', 1, codeOfStatus(404));
    const refused = settle('failed', 1, codeOfStatus(403));
    const former = mergeResult(marked, refused, false);
    const cells = [untouched, marked, mark(marked), gone, refused, former];
    const shown = [...cells, settle('deleted', 1, codeOfStatus(204)), untouched | doubt].map(hexOf);
    const named = namesIn(page('src/ledger/README.md')).filter((name) => name.startsWith('0x'));
    expect([...new Set(named)].sort()).toEqual([...new Set(shown)].sort());
  });

  it('explains one term in each row of the glossary', () => {
    const terms = rowsOf(page('src/glossary.md')).map(([term]) => term!);
    expect(terms.length).toBeGreaterThan(50);
    expect(terms.filter((term) => /[;,/]/.test(term))).toEqual([]);
    expect(terms.filter((term, n) => terms.indexOf(term) !== n)).toEqual([]);
  });

  it('takes each invariant from the tests that have its name, and refuses what it cannot place', () => {
    expect(readInvariants().length).toBeGreaterThan(20);
    const text =
      "/** @invariant sum: It adds up. */\n  it.each([1, 2])('adds %i', () => {});\n\n/** @invariant sum */\nit('ends', x);";
    const tests = ['adds %i', 'ends'].map((title) => ({ file: 'a.test.ts', title }));
    expect(invariantsOf(tagsOf('a.test.ts', text))).toEqual([{ sentence: 'It adds up.', tests }]);
    expect(() => invariantsOf(tagsOf('a.test.ts', text.replace(': It adds up.', '')))).toThrow('needs one sentence');
    expect(() => tagsOf('a.test.ts', '/** @invariant sum: It adds up. */\nconst none = 1;')).toThrow(
      'names no invariant',
    );
  });
});

function hexOf(cell: Cell): string {
  return `0x${cell.toString(16).padStart(4, '0')}`;
}

describe('what users are told to type', () => {
  it('is never `npx expunge`: outside of this folder that asks the registry for a name that anybody may take', () => {
    const texts = [...sources, ...pages.map((path) => ({ path, text: readPage(path) }))];
    const teaching = texts.filter(({ text }) => text.includes('npx expunge')).map(({ path }) => path);
    expect(teaching).toEqual([]);
  });
});

describe('the package', () => {
  it('has its command among the files it ships', () => {
    const { bin, files } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
    expect(files).toContain(posix.dirname(bin.expunge));
  });
});

describe.runIf(existsSync(`${root}.git`))('git', () => {
  const git = (...args: string[]) =>
    spawnSync('git', args, { cwd: root, encoding: 'utf8' }).stdout.split('\n').filter(Boolean);

  it('does not take up what the walk of the README leaves behind: tokens, lists and reports', () => {
    const left = ['token', 'old.csv', 'report.csv', 'expunge.config.json', '.expunge/runs/1/outcomes.csv'];
    expect(git('check-ignore', '--no-index', ...left)).toEqual(left);
  });

  it('ignores no file of the project', () => {
    expect(git('ls-files', '--cached', '--ignored', '--exclude-standard')).toEqual([]);
    expect(git('check-ignore', '--no-index', 'test/fixtures/new.csv', 'src/sandbox/token')).toEqual([]);
  });
});
