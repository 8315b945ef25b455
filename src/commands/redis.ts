import { redisStatus } from '../redis/redis-status.ts';
import { stopPrivateRedis } from '../redis/stop-redis.ts';
import type { Invocation } from './command.ts';

/** `redis status` and `redis stop`: the private Redis of a state folder. */
export async function execute({ verb, config, options, stdout }: Invocation): Promise<number> {
  if (verb === 'redis stop') {
    const result = await stopPrivateRedis(config.stateDir);
    stdout.write(
      result === 'stopped' ? 'Stopped the private Redis; its data stay.\n' : 'No private Redis is running.\n',
    );
    return 0;
  }
  const status = await redisStatus(config.stateDir);
  if (options.json) stdout.write(`${JSON.stringify(status)}\n`);
  else
    for (const [name, value] of Object.entries(status)) stdout.write(`${name.padEnd(12)}  ${String(value ?? '-')}\n`);
  return 0;
}
