import { describe, expect, test, vi } from 'vitest';
import { OurSentinelConnector } from '../../../src/redis/client.ts';

describe('sentinel connector', () => {
  test('what is still heard of a lost connection cannot end the search for the next primary', async () => {
    const retry = { sentinelRetryStrategy: () => null };
    const connector = new OurSentinelConnector({ sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'main', ...retry });
    const cleanup = vi.fn();
    connector.failoverDetector = { cleanup };
    const search = connector.connect(() => {}).catch((error: Error) => error.message);
    expect(cleanup).toHaveBeenCalledOnce();
    expect(await search).toContain('All sentinels are unreachable');
  });
});
