import { type Redis, SentinelConnector } from 'ioredis';

// What we override is private to the types.
const parent = SentinelConnector as unknown as new (
  options: unknown,
) => {
  failoverDetector: { cleanup(): void } | null;
  connect(...args: unknown[]): Promise<unknown>;
  connectToSentinel(...args: unknown[]): Redis;
};

/** How ioredis finds the primary and hears of another one, with two faults of it mended. */
export class OurSentinelConnector extends parent {
  /**
   * The detector of the connection that was lost still listens. What it hears while the next one is sought would end the search, and
   * with it the client, for good.
   */
  override connect(...args: unknown[]): Promise<unknown> {
    this.failoverDetector?.cleanup();
    this.failoverDetector = null;
    return super.connect(...args);
  }

  /**
   * Its connections to the sentinels have no listener for errors: one that is away would be written to the console, again and again.
   * Whoever asks is told by the commands that fail.
   */
  override connectToSentinel(...args: unknown[]): Redis {
    return super.connectToSentinel(...args).on('error', () => {});
  }
}
