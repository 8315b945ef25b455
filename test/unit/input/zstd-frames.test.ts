import { randomBytes } from 'node:crypto';
import { constants, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { ZstdFrames } from '../../../src/input/zstd-frames.ts';

const isWhole = (data: Buffer, partSize = data.length || 1) => {
  const frames = new ZstdFrames();
  for (let at = 0; at < data.length; at += partSize) frames.feed(data.subarray(at, at + partSize));
  return frames.isWhole;
};

const withChecksum = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };
const skippable = Buffer.concat([Buffer.from([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0]), Buffer.from('abc')]);

const data: [name: string, frame: Buffer][] = [
  ['a short text', zstdCompressSync('a1\na2\n')],
  ['nothing', zstdCompressSync('')],
  ['a checksum at its end', zstdCompressSync('a1\na2\n', withChecksum)],
  ['one byte many times', zstdCompressSync(Buffer.alloc(300_000, 97), withChecksum)],
  ['blocks that cannot be packed', zstdCompressSync(randomBytes(300_000))],
  ['many blocks', zstdCompressSync(Array.from({ length: 90_000 }, (_, i) => `v-${i * 7919}`).join('\n'))],
  ['a frame to be skipped before it', Buffer.concat([skippable, zstdCompressSync('a1\n')])],
];

test.each(data)('data with %s are whole at their end', (_, frame) => {
  for (const partSize of [1, 3, 1_000, frame.length]) expect(isWhole(frame, partSize), `${partSize}`).toBe(true);
});

test.each(data)('data with %s are not whole before', (_, frame) => {
  const lengths = Array.from({ length: Math.min(frame.length - 1, 40) }, (_, i) => [
    i + 1,
    frame.length - 1 - i,
  ]).flat();
  const ends = lengths.filter((length) => length > 0 && length !== skippable.length);
  expect(ends.filter((length) => isWhole(frame.subarray(0, length)))).toEqual([]);
});

test('what is no zstd is left to the decoder', () => {
  expect(isWhole(Buffer.from('no zstd at all'))).toBe(true);
});
