import { megabytes, plural } from '../../format.ts';
import { type RedisStatus, redisStatus, stopPrivateRedis } from '../../redis/private/stop.ts';
import { columns } from '../../terminal/style.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { askYes } from '../session.ts';

/** `redis status` and `redis stop`: the private Redis of a state folder. */
export async function execute(invocation: Invocation): Promise<number> {
  const { commandName, config, options, stdout } = invocation;
  if (commandName === 'redis stop') {
    const result = await stopPrivateRedis(config.stateDir, (users) => confirmStop(invocation, users));
    const words =
      result === 'stopped' ? 'Stopped the private Redis; its data is kept.' : 'No private Redis is running.';
    if (options.json) jsonLines(stdout, true)('redis', { state: 'stopped', changed: result === 'stopped' });
    else stdout.write(`${words}\n`);
    return 0;
  }
  const status = await redisStatus(config.stateDir);
  if (options.json) {
    const { memoryBytes, ...facts } = status;
    jsonLines(stdout, true)('redis', { ...facts, memory_bytes: memoryBytes });
    return 0;
  }
  stdout.write(statusText(status));
  return 0;
}

/** The known facts, one per line. */
export function statusText({
  state,
  store,
  address,
  server,
  pid,
  clients,
  memoryBytes,
  warnings,
}: RedisStatus): string {
  const lines = [
    ['state', state],
    ['data', store],
    ['address', address],
    ['server', server],
    ['pid', pid],
    ['clients', clients === null ? null : plural(clients, 'connections')],
    ['memory', memoryBytes === null ? null : `${megabytes(memoryBytes)} used`],
    ...warnings.map((warning) => ['warning', warning]),
  ];
  const known = lines.filter(([, value]) => value !== null);
  return `${columns(known.map((cells) => cells.map(String)))}\n`;
}

async function confirmStop(invocation: Invocation, users: readonly string[]): Promise<void> {
  const then = 'They stop until a command starts it again, and unfinished runs resume in doubt.';
  await askYes(invocation, `The private Redis is in use: ${users.join(', ')}. ${then} Stop it?`);
}
