import { existsSync, readdirSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Command } from '../../../src/commands/command.ts';
import { readCommandLine } from '../../../src/commands/line/command-line.ts';
import { commands } from '../../../src/commands/line/commands.ts';
import { settings } from '../../../src/config/settings.ts';
import { readTopic, topicNames, topics } from '../../../src/help/topics.ts';
import { defineResources } from '../../../src/model/resource.ts';
import { architecturePages, pages, readPage, withGenerated } from '../../support/docs.ts';
import { definitionsIn } from '../../support/resource-pages.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));

/** The commands of the blocks of code, by their words: what stands before a pipe or behind a semicolon is another program's. */
function commandsOf(page: string): string[][] {
  const blocks = [...page.matchAll(/^```(sh|console)\n(.*?)^```/gms)];
  const lines = blocks.flatMap(([, kind, text = '']) => {
    const typed = text.replaceAll('\\\n', ' ').split('\n');
    return kind === 'sh' ? typed : typed.filter((line) => line.startsWith('$ ')).map((line) => line.slice(2));
  });
  return lines.flatMap((line) => {
    const [, , rest] = /(^|[\s;|])(?:\.\/)?expunge (?=[a-z-])((?:'[^']*'|"[^"]*"|[^'"|<>;#&])*)/.exec(line) ?? [];
    return rest === undefined || /docker build|ACL SETUSER|systemctl|journalctl/.test(line) ? [] : [wordsOf(rest)];
  });
}

function wordsOf(line: string): string[] {
  const words = line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
  return words.map((word) => word.replace(/^(['"])(.*)\1$/, '$2'));
}

const all = (commands: readonly Command[]): Command[] =>
  commands.flatMap((one) => [one, ...all(one.subcommands ?? [])]);
const ownFlags = all(commands).flatMap(({ options = [] }) =>
  options.flatMap(({ flags }) => flags.match(/--[\w-]+/g) ?? []),
);
const settingFlags = Object.values(settings).map(({ flag }) => `--${flag}`);
const flags = [...settingFlags, ...ownFlags, '--config', '--no-color', '--help', '--version'];

describe.each(pages)('%s', (path) => {
  const page = readPage(path);

  beforeAll(() => defineResources(definitionsIn(page)));
  afterAll(() => defineResources({}));

  it('names only flags that exist', () => {
    const spans = [...page.matchAll(/`((?:expunge|--|[a-z-]+ --)[^`]*)`/g)].map(([, span]) => span!);
    const ours = spans.filter((span) => span.startsWith('--') || isOurs(span));
    const named = ours.flatMap((span) => span.match(/(?<![\w-])--[a-z][\w-]*/g) ?? []);
    expect(named.filter((flag) => !flags.includes(flag))).toEqual([]);
  });

  it('shows only commands that can be read', () => {
    for (const words of commandsOf(page))
      expect(() => readCommandLine(words, '0', () => {}), words.join(' ')).not.toThrow();
  });
});

describe.each([...pages, ...architecturePages])('%s', (path) => {
  const page = readPage(path);

  it('has its tables as `npm run docs` writes them', () => {
    expect(withGenerated(page)).toBe(page);
  });

  it('has only links that lead somewhere', () => {
    const links = [...page.matchAll(/\]\(([^)\s]+)\)/g)].map(([, to]) => to!).filter((to) => !to.startsWith('http'));
    expect(links.filter((to) => !leads(path, to))).toEqual([]);
  });
});

const isOurs = (span: string) => commands.some(({ name }) => span.replace(/^expunge /, '').startsWith(`${name} `));

/** Whether a link of a page leads to a file, and to a heading of it. */
function leads(from: string, link: string): boolean {
  const [file = '', anchor] = link.split('#');
  const to = file === '' ? from : posix.join(posix.dirname(from), file);
  if (!existsSync(root + to)) return false;
  if (anchor === undefined) return true;
  const headings = [...readPage(to).matchAll(/^#+ (.*)$/gm)].map(([, text]) => text!);
  return headings.some(
    (text) =>
      text
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-') === anchor,
  );
}

describe('the pages', () => {
  it('show commands, which are found', () => {
    expect(pages.flatMap((path) => commandsOf(readPage(path))).length).toBeGreaterThan(60);
  });

  it('lead with a README of 300 lines at most', () => {
    expect(readPage('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(300);
  });

  it('are the topics of the list, each with the heading that the list shows', () => {
    const files = readdirSync(`${root}src/help`).filter((name) => name.endsWith('.md'));
    expect(files.sort()).toEqual(topicNames.map((name) => `${name}.md`).sort());
    const abouts = topicNames.map((name) => /^# .*?: (.*)$/m.exec(readTopic(name))?.[1] ?? 'a name alone');
    expect(abouts).toEqual(Object.values(topics));
  });
});

describe('withGenerated', () => {
  it('writes what is missing, and nothing else', () => {
    const page = 'before\n<!-- exit-codes -->\nold\n<!-- /exit-codes -->\nafter';
    expect(withGenerated(page)).toMatch(
      /^before\n<!-- exit-codes -->\n\| exit .*\| 143 .*<!-- \/exit-codes -->\nafter$/s,
    );
  });

  it('refuses a name that nothing is generated for, and a part without an end', () => {
    expect(() => withGenerated('<!-- exit-code -->\n<!-- /exit-code -->')).toThrow('nothing can be written there');
    expect(() => withGenerated('<!-- exit-codes -->\n')).toThrow('nothing can be written there');
  });
});
