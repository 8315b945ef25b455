import { scenarios } from './scenarios.ts';
import { simulate } from './world.ts';

// Prints the table of the zoo: `node test/support/zoo/run.ts [part of a name [trace every so many seconds]]`.

const [pattern = '', traceEvery = '0'] = process.argv.slice(2);
const percent = (share: number) => `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`;
let [met, all] = [0, 0];
for (const scenario of scenarios.filter(({ group, name }) => `${group} ${name}`.includes(pattern))) {
  let second = 0;
  const trace = (line: string) => second++ % Number(traceEvery) === 0 && console.log(line);
  const { used, refused, follow, firstRefusals } = simulate(scenario, Number(traceEvery) > 0 ? trace : undefined);
  const want = scenario.want ?? {};
  const missed = [
    used < (want.used ?? 0) ? 'U' : '',
    refused > (want.refused ?? 1) ? 'R' : '',
    (follow ?? 0) > (want.follow ?? Number.POSITIVE_INFINITY) ? 'F' : '',
  ].join('');
  all++;
  if (missed === '') met++;
  const seconds = follow === null ? '' : `${follow.toFixed(1)} s`;
  const cells = [scenario.group.padEnd(18), scenario.name.padEnd(56), percent(used).padStart(8)];
  console.log([...cells, percent(refused).padStart(8), seconds.padStart(10), firstRefusals, missed].join(' '));
}
console.log(`${met} of ${all} rows as wanted (U used, R refused, F time to follow)`);
