import { playIdeally } from './ideal.ts';
import type { Result } from './measures.ts';
import { heldTo, scenarios } from './scenarios.ts';
import { missedBy, playSeeds, simulate, type Wants } from './world.ts';

// Prints the table of the zoo: `node test/support/zoo/run.ts [part of a name [trace every so many seconds]]`; with `--table` first, as Markdown, the
// rows that miss what is wanted, or those of that name, beside what a player would reach who knew the limit; with `--seeds N` what so many seeds show.

const args = process.argv.slice(2);
const isTable = args[0] === '--table';
const seeds = args[0] === '--seeds' ? Number(args[1]) : 0;
const [pattern = '', traceEvery = '0'] = args.slice(seeds > 0 ? 2 : isTable ? 1 : 0);
const rows = scenarios.filter(({ group, name }) => `${group} ${name}`.includes(pattern));
const percent = (share: number) => `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`;
if (seeds > 0) printSeeds(seeds);
else if (isTable) printTable();
else printRows();

/** `--seeds 8`: how many of so many seeds are as wanted, and what they are in the mean. */
function printSeeds(count: number): void {
  let held = 0;
  for (const scenario of rows) {
    const results = playSeeds(scenario, count);
    const met = results.filter((result) => missedBy(result, scenario.want) === '').length;
    if (met >= (7 / 8) * count) held++;
    const mean = (of: (result: Result) => number) => results.reduce((sum, result) => sum + of(result), 0) / count;
    const cells = [`${scenario.group} ${scenario.name}`.padEnd(90), percent(mean(({ used }) => used)).padStart(8)];
    console.log([...cells, percent(mean(({ refused }) => refused)).padStart(8), `${met} of ${count}`].join(' '));
  }
  console.log(`${held} of ${rows.length} rows as wanted with seven of eight seeds`);
}

function printRows(): void {
  let met = 0;
  for (const scenario of rows) {
    let second = 0;
    const trace = (line: string) => second++ % Number(traceEvery) === 0 && console.log(line);
    const result = simulate(scenario, Number(traceEvery) > 0 ? trace : undefined);
    const { used, refused, follow, firstRefusals } = result;
    const missed = missedBy(result, scenario.want);
    if (missed === '') met++;
    const seconds = follow === null ? '' : `${follow.toFixed(1)} s`;
    const cells = [scenario.group.padEnd(18), scenario.name.padEnd(56), percent(used).padStart(8)];
    console.log([...cells, percent(refused).padStart(8), seconds.padStart(10), firstRefusals, missed].join(' '));
  }
  console.log(`${met} of ${rows.length} rows as wanted (U used, R refused, F time to follow, L latency)`);
}

function printTable(): void {
  console.log('| target | ours | knows the limit | wanted | why |\n|---|---|---|---|---|');
  for (const scenario of rows) {
    const ours = simulate(scenario);
    if (pattern === '' && missedBy(ours, scenario.want) === '') continue;
    const cells = [words(ours), words(playIdeally(scenario)), wantedWords(scenario.want), heldTo(scenario).note ?? ''];
    console.log(`| ${[`${scenario.group}: ${scenario.name}`, ...cells].join(' | ')} |`);
  }
}

function words({ used, refused, follow }: Result): string {
  const seconds = follow === null ? [] : [follow === Number.POSITIVE_INFINITY ? 'never' : `${follow.toFixed(1)} s`];
  return [percent(used), percent(refused), ...seconds].join(' / ');
}

function wantedWords({ used, refused, follow }: Wants = {}): string {
  const shares = [used === undefined ? '–' : percent(used), refused === undefined ? '–' : percent(refused)];
  return [...shares, ...(follow === undefined ? [] : [`${follow} s`])].join(' / ');
}
