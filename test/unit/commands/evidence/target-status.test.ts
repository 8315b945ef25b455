import { expect, it } from 'vitest';
import { targetStatusLines } from '../../../../src/commands/evidence/target-status.ts';
import { targetOf } from '../../../../src/model/target.ts';
import { toTypeAnywhere } from '../../../../src/model/to-type.ts';

const none = { limiter: null, limit: null, minGrace: null, learned: null, refused: '', revision: 0 };
const file = { by: 'file', who: 'the file /run/stop on node-7', reason: '', at: 1 } as const;

it('the state of a target with a low rate ends with the command that forgets it', () => {
  const lowAfter = { refused: 2, answers: 583, agoMs: 40_000 };
  const learned = { perSecond: 12, silentMs: 0, isCapped: false, wasRefused: true, lowAfter };
  const stops = { target: null, processes: [], tokenless: [], alive: 1 };
  const status = { ...none, stops, learned, target: targetOf('https://api.example.com', '') };
  expect(targetStatusLines(status, { toType: toTypeAnywhere, isQuiet: false })).toEqual([
    'rate: starts at 12/s, as learned: 2 of 583 requests were refused, the last 40 s ago',
    'Forget it: expunge target forget-rate --base-url https://api.example.com',
  ]);
});

it.for([
  [1, 'Stopped by the file /run/stop on node-7. Sending resumes when that file is removed.'],
  [2, 'One of 2 processes: Stopped by the file /run/stop on node-7. Sending resumes when that file is removed.'],
] as const)('the state of a target with %i processes says whether a stop file holds all of them', ([alive, line]) => {
  const stops = { target: null, processes: [file], tokenless: [], alive };
  const status = { ...none, stops, target: targetOf('https://api.example.com', 'a') };
  expect(targetStatusLines(status, { toType: toTypeAnywhere, isQuiet: false })[0]).toBe(line);
});
