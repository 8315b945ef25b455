import { expect, test } from 'vitest';
import type { Log } from '../../../src/logger.ts';
import { RedisWatch } from '../../../src/worker/redis-watch.ts';

test('a Redis that goes away is said at once, then every minute, and its return once', () => {
  const said: [string, string, object][] = [];
  const say = (level: string) => (facts: object, message: string) => void said.push([level, message, facts]);
  const log: Log = { debug() {}, info: say('info'), warn: say('warn'), error: say('error') };
  const watch = new RedisWatch('redis://r:6379', log);
  for (let second = 0; second < 200; second++)
    watch.see(second >= 10 && second < 140 ? 'connection refused' : null, second * 1_000);
  const facts = { redis: 'redis://r:6379', reason: 'connection refused' };
  expect(said).toEqual([
    ['warn', 'Redis is away', { ...facts, since: '0 s' }],
    ['warn', 'Redis is away', { ...facts, since: '1 min' }],
    ['warn', 'Redis is away', { ...facts, since: '2 min' }],
    ['info', 'Redis is back', { redis: 'redis://r:6379', after: '2 min 10 s' }],
  ]);
});
