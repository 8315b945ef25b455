import type { Cluster } from 'ioredis';
import { doubtful, type Finding, fine, wrong } from './finding.ts';

/** A part of CLUSTER SLOTS: from a slot to a slot, then who serves them, the primary first, each with host, port and id. */
type SlotRange = [number, number, Server, ...Server[]];
type Server = [host: string, port: number, id: string];

const slots = 16_384;

/** Whether all slots of a cluster are served, and somebody is there to take over. */
export async function lookAtCluster(cluster: Cluster): Promise<Finding> {
  return judgeSlots((await cluster.call('CLUSTER', ['SLOTS'])) as SlotRange[]);
}

/** Pure. */
export function judgeSlots(ranges: readonly SlotRange[]): Finding {
  const served = ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
  const primaries = new Map(ranges.map(([, , primary, ...replicas]) => [primary[2], replicas.length]));
  const alone = [...primaries.values()].filter((replicas) => replicas === 0).length;
  const words = `${served} of ${slots} slots are served by ${primaries.size} ${primaries.size === 1 ? 'primary' : 'primaries'}`;
  if (served < slots)
    return wrong(
      'cluster',
      `${words}: runs in the others would stand still`,
      'bring the missing servers back, or give their slots to others',
    );
  if (alone > 0)
    return doubtful(
      'cluster',
      `${words}, ${alone} of them without a replica`,
      'give each primary a replica that can take over',
    );
  return fine('cluster', `${words}, and each has a replica`);
}
