import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { backOffOnErrors } from '../../../src/queue/queue.ts';

test('a loop that gets errors from Redis is paused until the wait is over, however many errors come, and then goes on', async () => {
  const events: string[] = [];
  const emitter = new EventEmitter();
  const worker = Object.assign(emitter, {
    closing: undefined,
    pause: async () => void events.push('pause'),
    resume: async () => void events.push('resume'),
  });
  let goOn = () => {};
  const wait = () =>
    new Promise<void>((resolve) => {
      events.push('wait');
      goOn = resolve;
    });
  backOffOnErrors(worker as never, wait);
  const settle = () => new Promise(setImmediate);
  for (let n = 0; n < 1_000; n++) emitter.emit('error', new Error('NOREPLICAS'));
  await settle();
  expect(events.splice(0)).toEqual(['pause', 'wait']);
  goOn();
  await settle();
  expect(events.splice(0)).toEqual(['resume']);
  emitter.emit('error', new Error('NOREPLICAS'));
  await settle();
  expect(events).toEqual(['pause', 'wait']);
});
