import type { ChunkQueue } from './queue.ts';
import type { QueueAddress } from './queues.ts';

// Loading BullMQ takes as long as the rest of a command, so an operation loads it when it uses a queue.

/** Calls `body` with the producer's side of a queue, and closes it. */
export async function withQueue<T>(address: QueueAddress, body: (queue: ChunkQueue) => Promise<T>): Promise<T> {
  const { openQueue } = await import('./queue.ts');
  const queue = openQueue(address);
  return body(queue).finally(() => queue.close());
}
