import type { KeyRow } from './key-row.ts';

/** Every key of the schedules of a target. They have the hash tag {fp} like its other keys. */
export const scheduleKeys = {
  schedules: {
    key: (fp: string) => `expunge:{${fp}}:schedules`,
    type: 'set',
    contents: 'names of the schedules',
    writers: ['schedule/schedule-store.ts'],
    expires: 'never',
  },
  schedule: {
    key: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}`,
    type: 'hash',
    contents: 'definition, state (active, paused, removed), last run',
    writers: ['schedule/schedule-store.ts'],
    expires: '30 days after removal',
  },
  scheduleHistory: {
    key: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:history`,
    type: 'string',
    contents: 'the outcome of its last occurrences, as JSON',
    writers: ['schedule/schedule-store.ts'],
    expires: '30 days after removal',
  },
  scheduleAudit: {
    key: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:audit`,
    type: 'list',
    contents: 'who did what to the schedule: the last 100 entries',
    writers: ['schedule/schedule-store.ts'],
    expires: '30 days after removal',
  },
  scheduleCarriedOver: {
    key: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:carried-over`,
    type: 'hash',
    contents: 'ids that an occurrence left to the next occurrence, packed with zstd',
    writers: ['schedule/carried-over.ts', 'schedule/schedule-store.ts'],
    expires: '30 days after removal',
  },
  scheduleCarriedOverNext: {
    key: (fp: string, name: string, run: string) => `expunge:{${fp}}:schedule:${name}:carried-over:${run}`,
    type: 'hash',
    contents: 'the same, before the run has claimed its occurrence',
    writers: ['schedule/carried-over.ts', 'schedule/schedule-store.ts'],
    expires: '1 h',
  },
  scheduleLease: {
    key: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:lease`,
    type: 'string',
    contents: 'which process reconciles the schedule',
    writers: ['schedule/lease.ts'],
    expires: '15 s',
  },
  scheduleHeartbeat: {
    key: (fp: string, name: string) => `expunge:{${fp}}:schedule:${name}:heartbeat`,
    type: 'string',
    contents: 'which process calls the heartbeat URL',
    writers: ['schedule/heartbeat.ts'],
    expires: '15 s',
  },
  scheduleSource: {
    key: (fp: string, source: string) => `expunge:{${fp}}:source:${source}`,
    type: 'string',
    contents: 'a worker has this source of schedules',
    writers: ['worker/scheduler.ts'],
    expires: '10 s',
  },
  scheduleOccurrence: {
    key: (fp: string, name: string, occurrence: number) => `expunge:{${fp}}:schedule:${name}:occurrence:${occurrence}`,
    type: 'string',
    contents: 'the run that was made for this occurrence',
    writers: ['schedule/schedule-store.ts'],
    expires: '7 days',
  },
} as const satisfies Record<string, KeyRow>;
