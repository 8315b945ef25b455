import { describe, expect, it } from 'vitest';
import { type AnsweredWarnings, readWarnings, spellOutWarnings } from '../../../src/api/warnings.ts';
import { type Advice, adviceText, type ToType } from '../../../src/model/to-type.ts';

const warnings: Advice[] = [
  (toType) => `no worker is alive; start one: ${toType('worker', '--account', 'a b')}`,
  'it no longer protects the ids of keep.csv',
  (toType) => `the run is stopped. Resume with: ${toType('start-all')}`,
];
const here: ToType = (command, ...words) => `./expunge ${[command, ...words].join('|')} --server URL`;

describe('warnings of an answer', () => {
  it('name the commands that stand in them, and none where none does', () => {
    expect(spellOutWarnings(warnings)).toEqual({
      warnings: [
        "no worker is alive; start one: expunge worker --account 'a b'",
        'it no longer protects the ids of keep.csv',
        'the run is stopped. Resume with: expunge start-all',
      ],
      commands: [['worker', '--account', 'a b'], ['start-all']],
    });
    expect(spellOutWarnings(['all is well'])).toEqual({ warnings: ['all is well'] });
  });

  it('are told with the commands as their reader starts them', () => {
    const read = readWarnings(JSON.parse(JSON.stringify(spellOutWarnings(warnings))));
    expect(read.map((warning) => adviceText(warning, here))).toEqual(
      warnings.map((warning) => adviceText(warning, here)),
    );
  });

  it.for<[string, unknown]>([
    ['names none', undefined],
    ['names no words', [[], 'start-all', [1], null]],
    ['names others', [['stop-all']]],
  ])('stay as a server said them that %s', ([, commands]) => {
    const answer = { warnings: ['Resume with: expunge start-all'], commands } as AnsweredWarnings;
    expect(readWarnings(answer).map((warning) => adviceText(warning, here))).toEqual(answer.warnings);
  });
});
