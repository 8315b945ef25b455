import type { Caller } from '../api/access.ts';
import type { FailureGroup } from '../api/evidence-routes.ts';
import type { OverviewReader, runSummary } from '../api/overview.ts';
import type { KeptPlanFacts, ShownPlan } from '../api/plan-routes.ts';
import type { words } from '../api/read-routes.ts';
import type { RunView, readHistoryFacts } from '../api/run-view.ts';
import type { PlanField } from '../api/sent-settings.ts';
import type { reachFacts } from '../api/token-store.ts';

// The types of what the API sends, from its own source: pages import only types from there.

export type Words = { [name in Exclude<keyof typeof words, 'definitions'>]: readonly (typeof words)[name][number][] };
export type OutcomeWord = Words['outcomes'][number];
export type Person = Pick<Caller, 'name' | 'role'> & {
  worker_of: string | null;
  targets: ReturnType<typeof reachFacts>;
};

export type { PlanField };

export type Overview = Awaited<ReturnType<OverviewReader['read']>>;
export type RunSummary = ReturnType<typeof runSummary>;
export type RunPage = { items: RunSummary[]; next: string | null };
export type Standing = NonNullable<RunSummary['standing']>;
export type Target = Overview['targets'][number];
export type Worker = Overview['workers'][number];
export type Schedule = Overview['schedules'][number];

export type Run = Awaited<ReturnType<RunView['read']>>;
export type AuditEntry = Run['audit'][number] & { [fact: string]: unknown };
export type RunHistory = Awaited<ReturnType<typeof readHistoryFacts>>;
export type Point = RunHistory['points'][number];
export type RunEvent = RunHistory['events'][number];
export type Wait = RunHistory['waits'][number];

export type { FailureGroup, KeptPlanFacts as KeptPlan, ShownPlan as Plan };
