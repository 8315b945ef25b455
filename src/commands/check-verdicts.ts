import { verdictsWith } from '../delete/verdict.ts';
import { haltRules } from '../ledger/thresholds.ts';
import { haltAnswers, haltWords } from '../terminal/halt-words.ts';
import type { Invocation } from './command.ts';

/** The table in force, `*` before what `--treat` changes, and what halts a run whatever its ids mean. */
export function printVerdicts({ config, options, stdout }: Invocation): number {
  const table = verdictsWith(config.treat);
  const verdicts = [
    ...table.map(({ answers, means, treated }) => ({ answer: answers, means, treated })),
    { answer: 'no answer', means: 'retried; may have been executed', treated: false },
    { answer: 'not sent', means: 'waits until the API can be reached; not an attempt', treated: false },
  ];
  const halts = haltRules.map((rule) => ({ halt: rule.halt, answer: haltAnswers(rule), when: haltWords(rule) }));
  if (options.json) {
    for (const row of verdicts) stdout.write(`${JSON.stringify({ v: 1, type: 'verdict', ...row })}\n`);
    for (const row of halts) stdout.write(`${JSON.stringify({ v: 1, type: 'halt', ...row })}\n`);
    return 0;
  }
  for (const { answer, means, treated } of verdicts) {
    stdout.write(`${`${treated ? '*' : ' '} ${answer}`.padEnd(20)} ${means}\n`);
  }
  if (config.treat !== '') stdout.write('  * by --treat\n');
  stdout.write('\nA run is halted by\n');
  for (const { answer, when } of halts) stdout.write(`  ${when} answered ${answer}\n`);
  return 0;
}
