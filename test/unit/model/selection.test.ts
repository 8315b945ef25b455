import { describe, expect, it } from 'vitest';
import {
  isChosen,
  isChosenToRetry,
  parseRetrySelection,
  parseSelection,
  worthRetry,
} from '../../../src/model/selection.ts';

describe('--only', () => {
  it('takes outcomes and codes, each once', () => {
    const text = 'failed, unknown,http_409,timeout,rejected,unsafe_character,run_cancelled,pending,failed';
    expect(parseSelection(text)).toEqual(text.replaceAll(' ', '').split(',').slice(0, -1));
  });

  it.each([
    ['faild', 'got "faild". Did you mean failed?'],
    ['409', 'got "409". Did you mean http_409?'],
    ['http_999', 'got "http_999"'],
    ['http_99', 'got "http_99"'],
    ['failed,', 'got nothing'],
    ['', 'got nothing'],
  ])('refuses "%s", which no report has, and says what was expected', (text, message) => {
    expect(() => parseSelection(text)).toThrow(message);
    expect(() => parseSelection(text)).toThrow('expected outcomes like failed, unknown, not_attempted, or codes like');
  });

  it('chooses a row that has one of its words as outcome or code', () => {
    const selection = parseSelection('unknown,http_409');
    expect(isChosen(selection, { outcome: 'failed', code: 'http_409' })).toBe(true);
    expect(isChosen(selection, { outcome: 'unknown', code: 'timeout' })).toBe(true);
    expect(isChosen(selection, { outcome: 'failed', code: 'http_403' })).toBe(false);
    expect(isChosen(selection, { outcome: 'pending', code: '' })).toBe(false);
  });
});

describe('--only of a retry', () => {
  it('takes what another run may delete', () => {
    expect(parseRetrySelection('failed,unknown,not_attempted')).toEqual(worthRetry);
    expect(parseRetrySelection('http_409,timeout,run_cancelled')).toEqual(['http_409', 'timeout', 'run_cancelled']);
  });

  it('takes what was found gone if it is named, not by its code', () => {
    const gone = { outcome: 'absent', code: 'http_410' } as const;
    expect(isChosenToRetry(parseRetrySelection('absent'), gone)).toBe(true);
    expect(isChosenToRetry(parseRetrySelection('gone_unconfirmed'), gone)).toBe(false);
    expect(isChosenToRetry(parseRetrySelection('http_410,failed'), gone)).toBe(false);
    expect(isChosenToRetry(worthRetry, gone)).toBe(false);
    expect(isChosenToRetry(parseRetrySelection('absent'), { outcome: 'deleted', code: 'http_204' })).toBe(false);
  });

  it.each(['deleted', 'rejected', 'duplicate', 'protected', 'pending', 'unsafe_character'])(
    'refuses %s rows',
    (word) => {
      expect(() => parseRetrySelection(`failed,${word}`)).toThrow(`"${word}" rows can't be retried; expected failed,`);
    },
  );
});
