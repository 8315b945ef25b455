import { describe, expect, test } from 'vitest';
import { mostlyRejected, mostlyRejectedAs } from '../../../src/input/with-list.ts';

describe('check rejected', () => {
  test.each([
    [{ unsafe_character: 11 }, 20, 'unsafe_character'],
    [{ unsafe_character: 10 }, 19, 'unsafe_character'],
    [{ too_long: 3, placeholder: 600 }, 1_000, 'placeholder'],
    [{ unsafe_character: 10 }, 10, 'unsafe_character'],
    [{ unsafe_character: 10 }, 20, null],
    [{ unsafe_character: 9 }, 9, null],
    [{ unsafe_character: 40, placeholder: 40 }, 100, null],
    [{}, 0, null],
  ])('a list with %j of %i rows is refused for %s', (rejectedByCode, rows, code) => {
    expect(mostlyRejectedAs({ rows, rejectedByCode })).toBe(code);
  });

  test('says how many, which, where they are, and how to go on', () => {
    const error = mostlyRejected(
      { files: ['ids.csv'], rows: 2_000, rejectedByCode: { unsafe_character: 1_999 } },
      'unsafe_character',
      () => [
        { file: 0, id: 'a/1' },
        { file: 0, id: 'a"/2' },
      ],
      'r.csv',
    );
    expect(error).toMatchObject({
      code: 'USAGE',
      message: '1,999 of 2,000 rows are rejected as unsafe_character, like "a/1", "a\\"/2"; nothing was sent',
      next: [
        'check the file and --column; all rejected rows are in r.csv',
        `if ids of this API hold such characters: --allow-id-chars '/"'`,
        'to continue with the other rows: --expect-rejected',
      ].join('\n'),
    });
  });
});
