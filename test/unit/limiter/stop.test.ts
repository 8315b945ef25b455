import { describe, expect, it } from 'vitest';
import { type Stop, stopAdvice, stopFromStored, stopText, storedStop } from '../../../src/limiter/stop.ts';

const stop: Stop = { by: 'operator', who: 'ana', reason: 'they call us.', at: 7 };

describe('a stop', () => {
  it('says who stopped what and why, and how it goes on', () => {
    expect(stopText(stop)).toBe('Stopped for all runs of this target by ana: they call us');
    expect(stopAdvice({ ...stop, reason: '' }, 'expunge start-all')).toBe(
      'Stopped for all runs of this target by ana. Resume with: expunge start-all',
    );
    expect(stopAdvice({ ...stop, by: 'file', who: 'the file /run/stop on m1' }, 'expunge start-all')).toBe(
      'Stopped by the file /run/stop on m1: they call us. Sending resumes when that file is removed.',
    );
  });

  it('is read as it was stored, and holds also where that cannot be read', () => {
    expect(stopFromStored(storedStop(stop))).toEqual(stop);
    expect(stopFromStored('')).toBeNull();
    for (const text of ['1', '{', '[]', 'true', '{"who":"bob"}'])
      expect(stopFromStored(text), text).toMatchObject({ by: 'operator' });
    expect(stopFromStored('null')).not.toBeNull();
  });
});
