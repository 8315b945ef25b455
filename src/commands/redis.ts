import { redisStatus, stopPrivateRedis } from '../redis/private/stop.ts';
import { confirmYes } from '../terminal/ask.ts';
import type { Invocation } from './command.ts';

/** `redis status` and `redis stop`: the private Redis of a state folder. */
export async function execute(invocation: Invocation): Promise<number> {
  const { verb, config, options, stdout } = invocation;
  if (verb === 'redis stop') {
    const result = await stopPrivateRedis(config.stateDir, (users) => confirmStop(invocation, users));
    stdout.write(
      result === 'stopped' ? 'Stopped the private Redis; its data is kept.\n' : 'No private Redis is running.\n',
    );
    return 0;
  }
  const status = await redisStatus(config.stateDir);
  if (options.json) stdout.write(`${JSON.stringify(status)}\n`);
  else
    for (const [name, value] of Object.entries(status)) stdout.write(`${name.padEnd(12)}  ${String(value ?? '-')}\n`);
  return 0;
}

async function confirmStop({ options, stdin, stderr, env }: Invocation, users: readonly string[]): Promise<void> {
  const then = 'They stop until a command starts it again, and unfinished runs resume in doubt.';
  const question = `The private Redis is in use: ${users.join(', ')}. ${then} Stop it?`;
  await confirmYes(question, options.yes === true, { stdin, stderr, env, stdinIsData: false });
}
