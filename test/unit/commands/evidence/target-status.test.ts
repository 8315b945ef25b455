import { expect, it } from 'vitest';
import { targetStatusLines } from '../../../../src/commands/evidence/target-status.ts';
import { targetOf } from '../../../../src/model/target.ts';
import { toTypeAnywhere } from '../../../../src/model/to-type.ts';

const none = { limiter: null, limit: null, minGrace: null, learned: null, refused: '', revision: 0 };
const file = { by: 'file', who: 'the file /run/stop on node-7', reason: '', at: 1 } as const;

it.for([
  [1, 'Stopped by the file /run/stop on node-7. Sending resumes when that file is removed.'],
  [2, 'One of 2 processes: Stopped by the file /run/stop on node-7. Sending resumes when that file is removed.'],
] as const)('the state of a target with %i processes says whether a stop file holds all of them', ([alive, line]) => {
  const stops = { target: null, processes: [file], tokenless: [], alive };
  const status = { ...none, stops, target: targetOf('https://api.example.com', 'a') };
  expect(targetStatusLines(status, { toType: toTypeAnywhere, isQuiet: false })[0]).toBe(line);
});
