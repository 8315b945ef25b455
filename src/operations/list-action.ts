import type { Sources } from '../config/read-config.ts';
import type { Config } from '../config/settings.ts';
import type { Role } from '../model/role.ts';
import type { By } from './action.ts';

/** Options of a run in addition to its settings; see the rows of `run-rules.ts`. */
export type RunOptions = {
  detach?: boolean; // left to the workers of its target
  startAt?: number; // ms since 1970
  stopAt?: number; // ms since 1970
  maxDuration?: number; // ms
  partial?: boolean; // send only the first ids of a longer list
  confirmHost?: string | undefined; // the host of a protected target, as a person typed it
};

/** How to read a list and what to do with its run, as a command line or a request says it. */
export type ListAction = {
  config: Config;
  sources: Sources; // `flag`: this action itself sets it
  env: NodeJS.ProcessEnv;
  options: RunOptions;
  by: By;
  /** The role of that person. A command at Redis has the role admin. */
  role: Role;
  /** The line to type again; '' for an action over HTTP. */
  command: string;
  /** Whether a person sees the plan before it is carried out. */
  isAsked: boolean;
  /** What a person who has seen the plan accepts of its list, in addition to the rules of the plan. */
  accepted?: Partial<Pick<Config, 'expectUnprotected' | 'allowMixedIds'>>;
  /** Whether the action must make a new run: it does not touch an existing one. */
  newRunOnly: boolean;
  /** The base URL of the run that is rehearsed. */
  rehearsalOf?: string;
  /** Called with a run before it is written, so that an action that breaks off does not make a second run. */
  onRun?: ((run: string) => Promise<void>) | undefined;
};
