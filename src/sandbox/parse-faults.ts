import { type FaultKind, readFault } from './fault-kinds.ts';
import { compileFaults, type FaultTable } from './faults.ts';

/** Reads `status-503=0.01,reset=0.005`. Throws an Error that says what was expected. */
export function parseFaults(text: string): FaultTable {
  const table: FaultTable = {};
  for (const part of text.split(',')) {
    const [kind, probability] = parseOne(part.trim());
    if (Object.hasOwn(table, kind)) throw new Error(`${kind} is given twice`);
    table[kind] = probability;
  }
  compileFaults(table, 0);
  return table;
}

function parseOne(part: string): [FaultKind, number] {
  const [kind = '', probability = '', ...rest] = part.split('=');
  if (!kind || rest.length > 0) throw new Error(`expected faults like status-503=0.01,reset=0.005, got "${part}"`);
  readFault(kind, 1);
  const number = Number(probability);
  if (/^[\d.]+$/.test(probability) && number <= 1) return [kind as FaultKind, number];
  throw new Error(`${kind}: expected a probability from 0 to 1 like ${kind}=0.01, got "${probability}"`);
}
