import { describe, expect, it } from 'vitest';
import {
  type Advice,
  adviceText,
  joinAdvice,
  mapAdvice,
  readAdvice,
  spellOut,
  type ToType,
  toTypeAnywhere,
  typedLine,
  unbroken,
} from '../../../src/model/to-type.ts';

const toTypeHere: ToType = (command, ...words) => `${typedLine('./expunge', command, words)} --state-dir x`;

describe('a command to type', () => {
  it('has each word as a shell takes it, and leaves open what only its reader knows', () => {
    expect(toTypeAnywhere('report', 'r1', '-o', "it's here.csv", '…')).toBe(
      "expunge report r1 -o 'it'\\''s here.csv' …",
    );
    expect(toTypeAnywhere('', '--help')).toBe('expunge --help');
  });

  it('is not broken where its text is laid out in lines', () => {
    const lay = (toType: ToType) => `first: ${toType('cancel', 'r 1')} now`.split(' ').join('\n');
    expect(unbroken(toTypeAnywhere, lay)).toBe("first:\nexpunge cancel 'r 1'\nnow");
  });
});

describe('an advice', () => {
  const advice: Advice = (toType) => `see ${toType('status', 'r1')}; or ${toType('runs remove', 'r 1')}`;
  const reason = 'somebody wrote "expunge status r1"';

  it('has its commands as its reader types them', () => {
    expect(adviceText(advice, toTypeHere)).toBe(
      "see ./expunge status r1 --state-dir x; or ./expunge runs remove 'r 1' --state-dir x",
    );
    expect(adviceText('wait', toTypeHere)).toBe('wait');
    expect(adviceText(null, toTypeHere)).toBeNull();
    expect(adviceText(joinAdvice([advice, 'wait'], '\n'), toTypeAnywhere)).toMatch(/^see expunge status r1; .*\nwait$/);
    expect(mapAdvice(null, (text) => text)).toBeNull();
    expect(adviceText(mapAdvice(advice, (text) => text.replace('see', 'SEE'))!, toTypeHere)).toMatch(
      /^SEE \.\/expunge/,
    );
  });

  it('is the same for somebody whom a server tells it', () => {
    const { text, commands } = spellOut(advice);
    expect(text).toBe(adviceText(advice, toTypeAnywhere));
    expect(adviceText(readAdvice(text, commands), toTypeHere)).toBe(adviceText(advice, toTypeHere));
  });

  it('keeps text of users as it is, also where it reads like a command', () => {
    expect(adviceText(reason, toTypeHere)).toBe(reason);
    expect(adviceText(readAdvice(reason, []), toTypeHere)).toBe(reason);
    const quoting: Advice = (toType) => `${toType('status', 'r1')}: ${reason}`;
    const { text, commands } = spellOut(quoting);
    expect(adviceText(readAdvice(text, commands), toTypeHere)).toBe(`./expunge status r1 --state-dir x: ${reason}`);
  });

  it('is shown as it came where a server names commands that are not in it', () => {
    expect(adviceText(readAdvice('wait', [['status', 'r1']]), toTypeHere)).toBe('wait');
  });
});
