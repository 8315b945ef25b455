// What the API sends, as the pages read it; its own description is /api/v1/openapi.json.

/** One outcome of the table that all share. */
export type OutcomeWord = {
  outcome: string;
  means: string;
  is_success: boolean;
  is_retryable: boolean;
  of_id: boolean;
};

export type Me = {
  name: string;
  role: 'read' | 'operate' | 'admin';
  worker_of: string | null;
  outcomes: OutcomeWord[];
  resources: string[];
  priorities: string[];
};

/** The summary of a run; its outcomes stand beside these, each under its name. */
export type RunSummary = {
  run: string;
  state: string;
  revision: number;
  reason: string;
  standing: Standing | null;
  rows: number;
  pending: number;
  attempts: number;
  answers_with_body: number;
  seconds: number;
  exit: number | null;
  retry_of: string | null;
  retried_by: string[];
  fp: string;
  target: string;
  account: string;
  created_at: string;
  created_by: string;
  changed_at: string;
  ended_at: string | null;
  started_at?: string | null;
  who: string;
  by?: string;
  note?: string;
  halt: string | null;
  detached: boolean;
  priority: string;
  per_second: number | null;
  seconds_left: number | null;
  [outcome: string]: unknown;
};

export type Point = {
  from: string;
  to: string;
  active_seconds: number;
  requests: number;
  throttled: number;
  waited_seconds: number;
  rate_achieved: number | null;
  rate_allowed: number | null;
  in_flight: number | null;
  latency_ms: { p50: number; p95: number } | null;
  taken_over: number;
  [outcome: string]: unknown;
};

export type RunEvent = { at: string; event: string; text: string };

export type AuditEntry = {
  at: string;
  action: string;
  by: string;
  who: string;
  reason: string;
  [fact: string]: unknown;
};

export type Run = RunSummary & {
  sentence: string;
  eta: { at_least_seconds: number; at_most_seconds: number } | null;
  settings: Record<string, unknown>;
  command: string;
  note: string;
  plan: string | null;
  plan_changed: string | null;
  doubt: string | null;
  abandoned: boolean;
  warnings: string[];
  examples: HaltExample[];
  behind_halt: string | null;
  audit: AuditEntry[];
};

type HaltExample = { id: string; outcome: string; code: string; excerpt: string };

export type RunHistory = { points: Point[]; events: RunEvent[] };

export type FailureGroup = {
  outcome: string;
  code: string;
  words: string;
  count: number;
  samples: { file?: string; line: number; id: string; excerpt?: string }[];
};

export type Standing = {
  why: string;
  text: string;
  since: string | null;
  until: string | null;
  by: string | null;
  next: string | null;
  also: string[];
};

type Order = { rate: string; who: string; reason: string; at: string; used?: number[] };

export type Target = {
  fp: string;
  target: string;
  account: string;
  revision: number;
  runs?: Record<string, number>;
  stop: { by: string; who: string; reason: string; at: string } | null;
  processes: number;
  stopped_processes: number;
  per_second: number | null;
  pinned: Order | null;
  budget: Order | null;
  limiters: {
    scope: string;
    per_second: number;
    advised_per_second: number | null;
    hold: { why: string; reason: string; until: string } | null;
    outage: { reason: string; since: string } | null;
    nothing_accepted_seconds: number;
  }[];
};

export type Worker = {
  process: string;
  fp: string;
  target: string;
  account: string;
  seen_at: string;
  stop: { reason: string } | null;
  slots: number | null;
};

type Slot = {
  slot: string;
  result: string;
  reason: string;
  run: string;
};

export type Schedule = {
  fp: string;
  target: string;
  account: string;
  name: string;
  state: string;
  revision: number;
  reason: string;
  cron: string;
  tz: string;
  when: string;
  next: string | null;
  history: Slot[];
};

export type Overview = {
  at: string;
  runs: { active: RunSummary[]; ended: number };
  targets: Target[];
  workers: Worker[];
  schedules: Schedule[];
};

export type Plan = {
  plan: string;
  code: string;
  target: string;
  account: string;
  name: string;
  counts: Record<string, number>;
  duplicates: number;
  rejected: Record<string, number>;
  rejected_samples?: { line: number; id: string; code: string }[];
  samples: string[];
  protected_read?: number | null;
  changed_rules?: Record<string, string>;
  first: { url: string } | null;
  forecast: { requests: number; seconds: number | null };
  confirm: number;
  expires_at: string;
};
