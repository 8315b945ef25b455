import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../../src/model/canonical.ts';

describe('canonical JSON', () => {
  test('is the same for the same value, whatever the order of its names', () => {
    expect(canonicalJson({ b: 1, a: { d: [null, true], c: 'x' } })).toBe('{"a":{"c":"x","d":[null,true]},"b":1}');
    expect(canonicalJson({ a: { c: 'x', d: [null, true] }, b: 1 })).toBe('{"a":{"c":"x","d":[null,true]},"b":1}');
  });

  test('sorts names by their code units, at every depth', () => {
    expect(canonicalJson([{ ä: 1, z: 2, Z: 3, '\ud83d\ude00': 4, '\uff5e': 5 }])).toBe(
      '[{"Z":3,"z":2,"ä":1,"\ud83d\ude00":4,"\uff5e":5}]',
    );
  });

  test('reads back as the same value', () => {
    const value = { text: 'a\n"\u2028\ud800', empty: {}, list: [] };
    expect(JSON.parse(canonicalJson(value))).toEqual(value);
  });
});
