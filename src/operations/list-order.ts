import type { Sources } from '../config/read-config.ts';
import type { Config } from '../config/settings.ts';
import type { Priority } from '../model/priority.ts';
import type { By } from './order.ts';

/** What a run is told beside its settings; see the rows of `run-rules.ts`. */
export type RunOptions = {
  detach?: boolean; // left to the workers of its target
  priority?: Priority;
  stopAt?: number; // ms since 1970
  maxDuration?: number; // ms
  finishBy?: number; // ms since 1970; refused if it cannot end by then, and stored nowhere
  partial?: boolean; // the first ids of a longer list are meant
};

/** How a list is read and what may become of its run, as a command line or a request says it. */
export type ListOrder = {
  config: Config;
  sources: Sources; // `flag`: this order itself says so
  env: NodeJS.ProcessEnv;
  options: RunOptions;
  by: By;
  /** The line to type again; '' for an order over HTTP. */
  command: string;
  /** Whether a person sees the plan before it is carried out. */
  isAsked: boolean;
  /** Whether the order is for a new run: one that is there is not touched. */
  newRunOnly: boolean;
  /** Told of a run before it is written, so that an order that breaks off is not given for a second one. */
  onRun?: ((run: string) => Promise<void>) | undefined;
};
