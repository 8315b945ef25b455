import { once } from 'node:events';
import { ExpungeError } from '../../errors.ts';
import { plural } from '../../format.ts';
import { logFor } from '../../logger.ts';
import { type EarlySession, withRedisAt } from '../../operations/session.ts';
import { ownQueueName } from '../../queue/queue.ts';
import { awaitRedis } from '../../redis/await-redis.ts';
import { resolveRedis } from '../../redis/private/open.ts';
import { type Command, type CommandChannel, openCommandChannel } from '../../worker/command-channel.ts';
import { type Part, Parts } from '../../worker/parts.ts';
import { openService, type Service, tokenPart } from '../../worker/service.ts';
import type { Invocation } from '../command.ts';
import { serviceOptions } from '../credentials.ts';
import { numberVariable } from './fork-workers.ts';

const reportEveryMs = 200;

/**
 * Deletes chunks of a foreground run together with the command that has started this process, until the command asks it to drain, is gone or is
 * frozen. A terminal sends its signals to all processes of a command: the command acts on them, and this process only on SIGTERM.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { env, signals } = invocation;
  if (env[numberVariable] === undefined || process.send === undefined) {
    throw new ExpungeError('USAGE', 'run-worker is started by expunge run', {
      next: (toType) => toType('run', 'FILE', '--workers', '4'),
    });
  }
  const channel = openCommandChannel(process);
  signals
    .on('SIGINT', () => {})
    .on('SIGHUP', () => {})
    .on('SIGTERM', () => channel.leave.abort());
  try {
    const command = await channel.command;
    if (command !== null) await work(invocation, command, channel);
    return 0;
  } finally {
    channel.close();
  }
}

async function work(invocation: Invocation, { order, token }: Command, channel: CommandChannel): Promise<void> {
  const { config, target, run, worker, ca } = order;
  const { signal } = channel.leave;
  const log = logFor({ ...invocation, config }, (line) => channel.say({ tell: line }), { worker });
  const address = order.redis ?? (await resolveRedis(config, invocation.env, () => {}));
  await withRedisAt(address, async (session: EarlySession) => {
    const options = serviceOptions({ config }, session, target, { token, ca });
    const service = openService({ ...options, queueName: ownQueueName(run), ownsQueue: false, isAlone: false, log });
    const report = (reason: string) => log.warn({ reason }, `worker ${worker} waits for Redis`);
    const parts = new Parts(
      [
        { name: 'redis', start: () => awaitRedis(session.redis, session.address, signal, report) },
        tokenPart(token, () => {}),
        reportPart(service, channel),
        ...service.parts,
      ],
      log,
    );
    invocation.status.give = () =>
      channel.say({ status: `worker ${worker}: ${plural(service.senders.inFlight, 'requests')} in flight` });
    try {
      await parts.start(signal);
      log.debug({ run }, 'deleting beside the command');
      if (!signal.aborted) await once(signal, 'abort');
    } finally {
      await parts.drain();
    }
  });
}

/** Reports the number of requests in flight to the command, for its panel. */
function reportPart({ senders }: Service, { say }: CommandChannel): Part {
  let timer: NodeJS.Timeout;
  return {
    name: 'report',
    start: () => {
      timer = setInterval(() => say({ inFlight: senders.inFlight }), reportEveryMs);
    },
    drain: () => clearInterval(timer),
  };
}
