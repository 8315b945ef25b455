import type { RunChoice } from '../ledger/list-runs.ts';
import type { HaltCode } from '../ledger/run.ts';
import type { IdCounts } from '../model/resource.ts';
import type { Role } from '../model/role.ts';
import type { Selection } from '../model/selection.ts';
import type { RunOptions } from '../operations/list-action.ts';
import type { ReportStyle } from '../operations/operations.ts';
import type { GivenDefinition } from '../operations/schedule-definition.ts';
import type { RetryAfterForm } from '../sandbox/fault-kinds.ts';

/** Options of most commands. */
type Common = {
  json?: boolean;
  yes?: boolean;
  reason?: string;
  dryRun?: boolean;
  rehearse?: boolean;
  all?: boolean;
  confirm?: number; // number of ids or requests
};

/** Options of lists, their plans and runs. */
type OfLists = Omit<RunOptions, 'partial'> & { partial?: boolean; only?: Selection; approveBy?: string };

/** Options of one run, or of a target. */
type OfRuns = {
  watch?: boolean;
  audit?: boolean;
  history?: boolean;
  maxDeletes?: number | null;
  halted?: HaltCode;
  allAccounts?: boolean;
};

/** Options that choose which runs are listed. */
type Chosen = { state?: RunChoice['states']; limit?: number; sort?: RunChoice['sort'] } & Pick<
  RunChoice,
  'since' | 'target' | 'list' | 'by' | 'label'
>;

/** Options of reports, manifests and checks. */
type OfEvidence = Partial<ReportStyle> & {
  output?: string;
  join?: string[];
  manifest?: string;
  check?: string;
  verify?: boolean;
  sample?: number;
  verdicts?: boolean;
  probeId?: string;
  semantics?: boolean;
  absentId?: string;
};

/** Options of schedules, tokens and the dashboard. */
type OfServices = Partial<Omit<GivenDefinition, 'settings' | 'maxDelayMs' | 'maxActiveMs' | 'stopAt' | 'note'>> & {
  maxDelay?: number; // ms
  replace?: boolean;
  after?: number; // ms since 1970
  count?: number;
  role?: Role;
  expires?: number; // ms
};

/** Options of the sandbox that are not in `SandboxFlags`. */
type OfSandbox = Omit<SandboxFlags, 'made' | 'rate' | 'rateWindowMs' | 'tokenFile'> & {
  resource?: IdCounts; // the number of objects of each resource to make
  rateLimit?: number; // per second
  rateWindow?: number; // ms
  writeToken?: string;
};

/**
 * The options of all commands, without the settings, by their name in camelCase, as their `parse` returns them. Options that are not given are missing.
 */
export type Options = Common & OfLists & OfRuns & Chosen & OfEvidence & OfServices & OfSandbox;

/** Options of the sandbox. Numbers are already checked, the text of `faults` is not. */
export type SandboxFlags = {
  made?: IdCounts | undefined; // the number of objects of each resource to make
  port?: number | undefined;
  host?: string | undefined; // 127.0.0.1 by default
  objects?: string | undefined; // path of a CSV of resource,id instead of made objects
  rate?: number | undefined; // requests per second; more are throttled
  rateWindowMs?: number | undefined; // counted in windows of this length
  retryAfter?: RetryAfterForm | undefined; // the header of throttled answers
  faults?: string | undefined; // 'status-503=0.01,reset=0.005'
  tokenFile?: string | undefined; // where to write the token
  latencyMs?: number | undefined;
  journal?: boolean | undefined; // keep every request, and show its result
};
