import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toSink } from '../../../src/commands/evidence/report-sink.ts';
import { bareOutput, ownMark, safeOutput, safeText } from '../../../src/terminal/safe-output.ts';
import { clip, styleOf, textWidth } from '../../../src/terminal/style.ts';

const unseen = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/u;

/** A stream as a process has it, and what was written to it. */
function openStream(fields: { isTTY?: boolean } = {}) {
  const stream = Object.assign(new PassThrough(), fields) as unknown as NodeJS.WriteStream;
  return { stream, written: () => String((stream as unknown as PassThrough).read() ?? '') };
}

/** Texts with what steers terminals, in any order. */
const hostile = fc.array(
  fc.oneof(
    fc.constantFrom(
      '\u001b[2J',
      '\u001b[31m',
      '\u001b]0;x\u0007',
      '\u009b2J',
      '\u202e',
      '\u200b',
      '\ufeff',
      '\r',
      '\0',
      '\u007f',
      '\u{e0001}',
      '\ud800',
    ),
    fc.string({ unit: 'binary' }),
  ),
);

describe('text for a terminal', () => {
  it('holds no control or format character but the line feed, whatever is in it, and says the same twice', () => {
    fc.assert(
      fc.property(hostile, (parts) => {
        const safe = safeText(parts.join(''));
        expect(safe).not.toMatch(unseen);
        expect(safeText(safe)).toBe(safe);
      }),
    );
  });

  it('is still the same JSON', () => {
    fc.assert(
      fc.property(hostile, (parts) => {
        const facts = { reason: parts.join(''), files: parts };
        expect(JSON.parse(safeText(JSON.stringify(facts)))).toEqual(facts);
      }),
    );
  });

  it('keeps our own styles, which take no columns, and shows those of a text as codes', () => {
    const { stream } = openStream({ isTTY: true });
    const style = styleOf(Object.assign(stream, { getColorDepth: () => 8 }));
    const line = style.red('a\u001b[32mb');
    expect(safeText(line)).toBe('\u001b[31ma\\u001b[32mb\u001b[39m');
    expect(textWidth(style.bold('ab'))).toBe(2);
    expect(clip(style.bold('abc'), 2)).toBe('a…');
    expect(safeText(`${ownMark(0x2068)}\u2068${ownMark(0x2069)}`)).toBe('\u2068\\u2068\u2069');
  });
});

describe('a safe stream', () => {
  it('writes safe text and is else the stream itself, to which what moves the cursor gets', () => {
    const { stream, written } = openStream({ isTTY: true });
    const safe = safeOutput(stream);
    safe.write('a\u001b[2J\n');
    expect(written()).toBe('a\\u001b[2J\n');
    expect(safe.isTTY).toBe(true);
    expect(safeOutput(safe)).toBe(safe);
    expect(bareOutput(safe)).toBe(stream);
  });

  it.each([
    [true, 'a\\u202e,1\n'],
    [false, 'a\u202e,1\n'],
  ])('of a report on a terminal (%s) shows what cannot be seen, in a pipe each byte', async (isTTY, text) => {
    const { stream, written } = openStream({ isTTY });
    expect(await toSink(safeOutput(stream), 'r1')('a\u202e,1\n')).toBe(true);
    expect(written()).toBe(text);
  });
});
