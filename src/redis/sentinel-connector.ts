import { type Redis, SentinelConnector } from 'ioredis';

// What we override is private to the types.
const parent = SentinelConnector as unknown as new (
  options: unknown,
) => { connectToSentinel(...args: unknown[]): Redis };

/**
 * How ioredis finds the primary. Its connections to the sentinels have no listener for errors, so one that is away would be written to the
 * console, again and again; whoever asks is told by the commands that fail.
 */
export class QuietSentinelConnector extends parent {
  override connectToSentinel(...args: unknown[]): Redis {
    return super.connectToSentinel(...args).on('error', () => {});
  }
}
