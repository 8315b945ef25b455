import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { type Cell, cellTable } from './table.ts';

const path = join(import.meta.dirname, 'RESULTS.md');
const heading = '## What an id costs';

/** Replaces the section of the results that holds these tables, with date, machine and commit. The other sections are written by hand. */
export function writeResults(cells: Cell[], rounds: number): void {
  const sections = readFileSync(path, 'utf8').split(/^(?=## )/m);
  const at = sections.findIndex((section) => section.startsWith(heading));
  if (at === -1) throw new Error(`${path} has no section "${heading}"`);
  writeFileSync(path, sections.with(at, sectionOf(cells, rounds)).join(''));
}

function sectionOf(cells: Cell[], rounds: number): string {
  const date = new Date().toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric' });
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const machine = `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`;
  const load = `a load of ${loadavg()[1]!.toFixed(0)}`;
  return [
    `${heading}: ${date}, commit ${commit}`,
    '',
    `Written by \`npm run bench -- --write\`: ${machine}, ${load}, a private Redis, a server of a few lines that answers 204.`,
    `Each figure is the median of ${rounds} rounds, in which the programs take turns. µs are CPU time, user and system, while requests are sent.`,
    '× bare is relative to the bare loop of the same round. "Whole" is from start to exit. A short list costs more per id: programs warm up.',
    '',
    ...cells.flatMap((cell) => [cellTable(cell), '']),
    '',
  ].join('\n');
}
