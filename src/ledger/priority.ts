/** The share of a run beside others of its target: of the workers' requests, and of the chunks that may wait in the queue. */
export const shares = { high: 16, normal: 4, low: 1 } as const;

export type Priority = keyof typeof shares;

export const priorities = Object.keys(shares) as Priority[];

/** As a run's hash holds it; normal where it holds none. */
export function priorityFromStored(stored: string): Priority {
  return priorities.find((priority) => priority === stored) ?? 'normal';
}
