import type { Cluster } from 'ioredis';
import { clusterSlots } from './client.ts';
import { type Finding, fine, wrong } from './finding.ts';

/** A part of CLUSTER SLOTS: from a slot to a slot, then who serves them, the primary first. */
type SlotRange = [number, number, Server, ...Server[]];
type Server = [host: string, port: number, id: string];

/** Whether all slots of a cluster are served. */
export async function lookAtCluster(cluster: Cluster): Promise<Finding> {
  return judgeSlots((await cluster.call('CLUSTER', ['SLOTS'])) as SlotRange[]);
}

/** Pure. */
export function judgeSlots(ranges: readonly SlotRange[]): Finding {
  const served = ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
  const primaries = new Set(ranges.map(([, , [, , id]]) => id)).size;
  const words = `${served} of ${clusterSlots} slots are served by ${primaries} ${primaries === 1 ? 'primary' : 'primaries'}`;
  if (served === clusterSlots) return fine('cluster', words);
  const next = 'bring the missing servers back, or give their slots to others';
  return wrong('cluster', `${words}: runs in the others would stand still`, next);
}
