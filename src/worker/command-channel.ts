import { BorrowedToken } from '../token/borrowed-token.ts';
import type { FromWorker, ToWorker, WorkerOrder } from './run-workers.ts';

/** The order of the command that started this process, and the token that it lends. */
export type Command = { order: WorkerOrder; token: BorrowedToken };

/** The channel of a worker to the command of its run. */
export type CommandChannel = {
  /** Null if the command left before it gave an order. */
  command: Promise<Command | null>;
  /** Aborted when the command asks this process to drain, is gone, or has said nothing for four seconds. */
  leave: AbortController;
  say(said: FromWorker): void;
  close(): void;
};

/** The side of a channel that a process started by `fork` has. */
export type Channel = Pick<NodeJS.Process, 'on' | 'off' | 'connected' | 'send'>;

const checkEveryMs = 500;
const silentChecks = 8;

/**
 * Listens to the command. Counts its silence in checks, not in time, so that a process that was stopped together with its command, by Ctrl-Z,
 * continues with it.
 */
export function openCommandChannel(channel: Channel): CommandChannel {
  const leave = new AbortController();
  let begin: (command: Command | null) => void = () => {};
  const command = new Promise<Command | null>((resolve) => {
    begin = resolve;
  });
  let token: BorrowedToken | null = null;
  let silent = 0;
  const say = (said: FromWorker) => {
    if (channel.connected) channel.send?.(said, undefined, undefined, () => {}); // fails if the command has just ended
  };
  const hear = (said: ToWorker) => {
    silent = 0;
    if (said === 'drain') leave.abort();
    else if ('halt' in said) token?.refuseForGood(said.halt);
    else if ('order' in said) {
      token = new BorrowedToken(said.loan, say);
      begin({ order: said.order, token });
    } else token?.receive(said.loan);
  };
  const end = () => leave.abort();
  const timer = setInterval(() => {
    if (++silent >= silentChecks) end();
  }, checkEveryMs);
  leave.signal.addEventListener('abort', () => begin(null), { once: true });
  channel.on('message', hear).on('disconnect', end);
  if (!channel.connected) end();
  const close = () => {
    clearInterval(timer);
    channel.off('message', hear).off('disconnect', end);
  };
  return { command, leave, say, close };
}
