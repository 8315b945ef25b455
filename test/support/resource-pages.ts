import { readResources } from '../../src/config/read-resources.ts';
import type { Definitions } from '../../src/model/resource.ts';

/** The texts of the blocks of code of a page that have one of these kinds, in their order. */
export function blocksOf(page: string, kind: 'json' | 'sh' | 'console'): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${kind}\\n(.*?)^\`\`\``, 'gms'))].map(([, text]) => text!);
}

/** The resources that the configuration files of a page define. */
export function definitionsIn(page: string): Definitions {
  const files = blocksOf(page, 'json').filter((text) => text.includes('"resources"'));
  return Object.assign({}, ...files.map((text) => readResources(JSON.parse(text).resources)));
}

/** The shown commands of a block, each with its output. */
export function shownIn(block: string): { line: string; output: string[] }[] {
  return block
    .split(/^\$ /m)
    .slice(1)
    .map((text) => {
      const [line = '', ...output] = text.trimEnd().split('\n');
      return { line, output };
    });
}

/** What differs from run to run: ids of runs, durations and rates, and the minute. */
const changing: [shown: RegExp, real: string][] = [
  [/\d{8}-\d{4}-[a-z0-9]{4}/g, '\\d{8}-\\d{4}-[a-z0-9]{4}'],
  [/in \d[\d.]* m?s \(\d+\/s\)/g, 'in [\\d.]+ m?s \\([\\d,.]+/s\\)'],
  [/\d{4}-\d\d-\d\d \d\d:\d\d UTC/g, '\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d UTC'],
];

/** A pattern for the whole output that a page shows word for word; a line `…` is for any number of lines. */
export function patternOf(output: readonly string[]): RegExp {
  const lines = output.map((line) => (line === '…' ? '(?:.*\\n)*?' : `${patternOfLine(line)}\\n`));
  return new RegExp(`^${lines.join('')}$`);
}

function patternOfLine(line: string): string {
  const [found] = changing.flatMap(([shown, real]) => [...line.matchAll(shown)].map((match) => ({ match, real })));
  if (found === undefined) return line.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
  const { match, real } = found;
  return patternOfLine(line.slice(0, match.index)) + real + patternOfLine(line.slice(match.index + match[0].length));
}
