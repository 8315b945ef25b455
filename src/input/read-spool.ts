import type { Position, Row } from '../model/row.ts';
import { BlockReader } from './block-reader.ts';
import { type Settled, SettledRange } from './settled-range.ts';
import type { Spool } from './spool.ts';
import { headerBytes, rejectAt, resourceAt, spoolFile } from './spool-files.ts';

/** A row with what became of it: to be sent where both `reject` and `settled` are null. */
export type SpooledRow = Row & Settled;

/** All rows of a spool in input order, in bounded memory. Can be read as often as one likes. */
export function* readSpool(spool: Spool): Generator<SpooledRow> {
  const rows = new BlockReader(spoolFile.rows(spool.folder));
  const positions = new BlockReader(spoolFile.positions(spool.folder));
  const settled = new SettledRange(spool.folder);
  try {
    for (let n = 0; n < spool.rows; n++) {
      settled.moveTo(n);
      yield { ...readRow(rows), ...readPosition(positions), ...settled.at(n) };
    }
  } finally {
    rows.close();
    positions.close();
  }
}

function readRow(reader: BlockReader): Pick<Row, 'resource' | 'reject' | 'id'> {
  const at = reader.take(headerBytes);
  const resource = resourceAt(reader.block, at);
  const reject = rejectAt(reader.block, at);
  const length = reader.block.readUInt16LE(at + 2);
  const start = reader.take(length);
  return { resource, reject, id: reader.block.toString('utf8', start, start + length) };
}

function readPosition(reader: BlockReader): Position {
  const at = reader.take(8);
  return { file: reader.block.readUInt32LE(at), line: reader.block.readUInt32LE(at + 4) };
}
