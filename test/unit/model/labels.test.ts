import { describe, expect, it } from 'vitest';
import { hasLabels, labelsFrom, labelsSetting } from '../../../src/model/labels.ts';

describe('labels', () => {
  it.each([
    ['ticket=OPS-77', 'ticket=OPS-77'],
    ['ticket=OPS-77, team=ops', 'team=ops,ticket=OPS-77'],
    ['url=https://jira/x?a=b', 'url=https://jira/x?a=b'],
    ['who=Jürgen Groß', 'who=Jürgen Groß'],
    ['who=Ju\u0308rgen', 'who=J\u00fcrgen'],
    ['team= ops', 'team=ops'],
  ])('reads %s as %s, whose labels are the same again', (text, normal) => {
    expect(labelsSetting(text)).toBe(normal);
    expect(labelsSetting(normal)).toBe(normal);
    const pairs = Object.entries(labelsFrom(normal)).map(([key, value]) => `${key}=${value}`);
    expect(pairs.join()).toBe(normal);
  });

  it.each(['', 'ticket', 'ticket=', '=x', 'Ticket=x', 'a b=x', 'a=x,', 'a=\u200b', 'a=x\ny', `a=${'x'.repeat(101)}`])(
    'refuses "%s"',
    (text) => {
      expect(() => labelsSetting(text)).toThrow('expected labels like');
    },
  );

  it('refuses one label twice, and more than 16', () => {
    expect(() => labelsSetting('a=1,a=2')).toThrow('"a" twice');
    expect(() => labelsSetting(Array.from({ length: 17 }, (_, n) => `a${n}=1`).join())).toThrow(
      'at most 16 labels, got 17',
    );
  });

  it('are found by all that are wanted, as a whole', () => {
    expect(hasLabels('team=ops,ticket=OPS-77', 'ticket=OPS-77')).toBe(true);
    expect(hasLabels('team=ops,ticket=OPS-77', 'team=ops,ticket=OPS-77')).toBe(true);
    expect(hasLabels('team=ops,ticket=OPS-77', 'ticket=OPS-7')).toBe(false);
    expect(hasLabels('', 'ticket=OPS-77')).toBe(false);
    expect(labelsFrom('')).toEqual({});
  });
});
