/** The share of a run compared with other runs of its target: of the workers' requests, and of the chunks that may wait in the queue. */
export const priorityWeights = { high: 16, normal: 4, low: 1 } as const;

export type Priority = keyof typeof priorityWeights;

export const priorities = Object.keys(priorityWeights) as Priority[];

/** Reads the priority in a run's hash; `normal` for any other text. */
export function priorityFromStored(stored: string): Priority {
  return priorities.find((priority) => priority === stored) ?? 'normal';
}
