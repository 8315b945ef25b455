import { parseSchedule, type Schedule } from '../../../src/schedule/schedule.ts';

/** An active schedule of every minute, seen to up to 12:00. */
export function aSchedule(more: Partial<Schedule> = {}): Schedule {
  const definition = {
    cron: '* * * * *',
    tz: 'UTC',
    from: 'expired',
    missed: 'none',
    maxDelayMs: 600_000,
    maxGrowth: 3,
    settings: { maxDeletes: '100', resource: 'views' },
  };
  const hash = { state: 'active', after: String(noon), definition: JSON.stringify(definition) };
  return { ...parseSchedule('nightly', hash), ...more };
}

export const noon = Date.parse('2027-01-01T12:00Z');
export const minute = 60_000;
