import type { ListSources } from '../config/list-source.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Log } from '../logger.ts';
import type { Target } from '../model/target.ts';
import type { Feeder } from '../queue/feeder.ts';
import type { Surroundings } from './open-source.ts';

/** What attending to the schedules of a target needs. */
export type ScheduleWork = Omit<Surroundings, 'stop'> & {
  ledger: Ledger;
  target: Target;
  feeder: Feeder;
  /** Those this process has. Schedules of all others are none of its business. */
  sources: ListSources;
  stateDir: string;
  /** The file of protected ids that the settings of this process name. */
  protectFile: string | null;
  who: string;
  /** Milliseconds since 1970. */
  now(): number;
  log: Log;
};
