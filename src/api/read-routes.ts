import { z } from 'zod';
import { auditFacts, readTargetAudit } from '../ledger/audit.ts';
import { pageOfRuns, pageOrders, type RunCursor } from '../ledger/list-runs.ts';
import { type RunState, runStates } from '../ledger/run.ts';
import { readStandings } from '../ledger/run-standings.ts';
import { knownTargets, openRunIndex } from '../lookup/run-index.ts';
import { labelsSetting, maxLabelText } from '../model/labels.ts';
import { idOutcomes, isLeft, isSuccess, isWorthAnotherRun, outcomes, outcomeText } from '../model/outcome.ts';
import { definitionsOf, resources } from '../model/resource.ts';
import { isWithin } from '../model/target.ts';
import { readRunRecord } from '../operations/run-record.ts';
import { readScheduleRecords } from '../operations/schedule-record.ts';
import { findRun } from '../operations/session.ts';
import { readTargetRecord } from '../operations/target-status.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { readSchedule } from '../schedule/schedule-store.ts';
import { readVersion } from '../version.ts';
import type { Edition } from './live.ts';
import { OverviewReader, readWorkers, runSummary, targetFacts, wholeSchedule } from './overview.ts';
import { Problem, type ProblemDocument, parsedAs, problemAnswer } from './problem.ts';
import { hasTarget, reachKey } from './reach.ts';
import { type ApiDeps, type Call, type Route, route } from './route.ts';
import { RunView, readHistoryFacts } from './run-view.ts';
import * as shapes from './shapes.ts';
import { findKnownTarget } from './targets.ts';
import { reachFacts } from './token-store.ts';

const listQuery = z.strictObject({
  state: z
    .string()
    .regex(/^[a-z]+(,[a-z]+)*$/)
    .optional()
    .describe('states, with commas'),
  target: z.string().min(1).max(500).optional().describe('a fingerprint, or a part of base URL or account'),
  q: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('a part of the id, of a file name, of the submitter, or of a reason'),
  label: z
    .string()
    .min(1)
    .max(maxLabelText)
    .optional()
    .describe('labels that the run has, like ticket=OPS-77, separated by commas'),
  sort: z.enum(pageOrders).default('created').describe('newest first: when they were made, or when they ended'),
  limit: z.coerce.number().int().min(1).max(500).default(50),
  cursor: z
    .string()
    .regex(/^\d{1,15}\.[\w-]{1,100}$/)
    .optional()
    .describe('`next` of the page before'),
});

/** The words for runs, sent to pages that have no list of their own. */
export const words = {
  outcomes: outcomes.map((outcome) => ({
    outcome,
    means: outcomeText(outcome),
    is_success: isSuccess(outcome),
    is_retryable: isWorthAnotherRun(outcome),
    of_id: idOutcomes.includes(outcome),
    is_left: isLeft(outcome),
  })),
  resources,
  get definitions() {
    return definitionsOf(resources);
  },
};

/** Routes that only read. */
export const readRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/me',
    role: 'read',
    about: 'within reach',
    summary: 'who is logged in',
    answer: shapes.me,
    handle: async ({ deps: { workerOf }, caller: { name, role, reach } }) => ({
      name,
      role,
      targets: reachFacts(reach),
      worker_of: workerOf !== null && hasTarget(reach, workerOf) ? workerOf : null,
      version: readVersion(),
    }),
  }),
  route({
    method: 'get',
    path: '/words',
    role: 'read',
    about: 'within reach',
    summary: 'the words for outcomes and resources',
    answer: shapes.words,
    handle: async () => words,
  }),
  route({
    method: 'get',
    path: '/overview',
    role: 'read',
    about: 'within reach',
    summary: 'everything at one moment',
    answer: shapes.overview,
    handle: async (call) => editionAnswer(await overviewOf(call).current()),
  }),
  route({
    method: 'get',
    path: '/events',
    role: 'read',
    about: 'within reach',
    summary: 'the same about once a second, as it changes',
    answer: null,
    types: ['text/event-stream'],
    handle: async (call) => {
      const { deps, context, caller, isStillAllowed } = call;
      return deps.streams.send(context, overviewOf(call), caller, isStillAllowed);
    },
  }),
  route({
    method: 'get',
    path: '/runs',
    role: 'read',
    about: 'within reach',
    summary: 'runs, newest first, in pages',
    query: listQuery,
    answer: shapes.runPage,
    handle: listRuns,
  }),
  route({
    method: 'get',
    path: '/runs/{run}',
    role: 'read',
    summary: 'a run',
    answer: shapes.runDetail,
    handle: async ({ deps, params }) => new RunView(deps, params.run!).read(),
  }),
  route({
    method: 'get',
    path: '/runs/{run}/record',
    role: 'read',
    about: 'within reach', // part of an id is enough to name a run
    summary: 'a run as --server shows it; a part of its id is enough',
    answer: shapes.runRecord,
    handle: async ({ deps: { session }, params, caller }) =>
      readRunRecord(session, await findRun(session, params.run!, caller.reach)),
  }),
  route({
    method: 'get',
    path: '/runs/{run}/history',
    role: 'read',
    summary: 'how a run went',
    answer: shapes.history,
    handle: async ({ deps, params }) => readHistoryFacts(deps.session, params.run!),
  }),
  route({
    method: 'get',
    path: '/runs/{run}/events',
    role: 'read',
    summary: 'a run and its history, as they change',
    answer: null,
    types: ['text/event-stream'],
    handle: async ({ deps, params, context, caller, isStillAllowed }) => {
      const view = () => {
        const shown = new RunView(deps, params.run!);
        return () => shown.readWithHistory();
      };
      await new RunView(deps, params.run!).read(); // throws not_found before a stream begins
      return deps.streams.send(context, deps.streams.live(`run ${params.run}`, 'run', view), caller, isStillAllowed);
    },
  }),
  route({
    method: 'get',
    path: '/targets',
    role: 'read',
    about: 'within reach',
    summary: 'every target, with its stop, rate and waits',
    answer: shapes.list(shapes.target),
    handle: async ({ deps: { session }, caller }) => {
      const { active, targets } = await openRunIndex(session.redis).read(caller.reach);
      const facts = targets.map((target) => targetFacts(session, target, active));
      return { items: await Promise.all(facts) };
    },
  }),
  route({
    method: 'get',
    path: '/targets/{fp}',
    role: 'read',
    summary: 'a target, and who did what to it',
    answer: shapes.targetDetail,
    handle: async ({ deps, params }) => targetDetail(deps, params.fp!),
  }),
  route({
    method: 'get',
    path: '/targets/{fp}/record',
    role: 'read',
    summary: 'a target as --server shows it',
    answer: shapes.targetRecord,
    handle: async ({ deps: { session }, params }) =>
      readTargetRecord(session.redis, await findKnownTarget(session, params.fp!)),
  }),
  route({
    method: 'get',
    path: '/targets/{fp}/schedules',
    role: 'read',
    summary: 'schedules as --server shows them',
    answer: shapes.scheduleRecords,
    handle: async ({ deps: { session }, params }) => {
      const records = await readScheduleRecords(session, await findKnownTarget(session, params.fp!), Date.now());
      const items = records.map(({ schedule, ...others }) => ({ ...others, schedule: withoutSecrets(schedule) }));
      return { items };
    },
  }),
  route({
    method: 'get',
    path: '/known-targets',
    role: 'read',
    about: 'within reach',
    summary: 'targets, their runs and stops as --server shows them',
    answer: shapes.knownTargets,
    handle: async ({ deps: { session }, caller: { reach } }) => {
      const known = await knownTargets(session.redis);
      return { items: known.filter((target) => isWithin(reach, target)) };
    },
  }),
  route({
    method: 'get',
    path: '/schedules/{fp}/{name}',
    role: 'read',
    summary: 'a schedule',
    answer: shapes.schedule,
    handle: async ({ deps: { session }, params }) => {
      const target = await findKnownTarget(session, params.fp!);
      const schedule = await readSchedule(session.redis, target.fp, params.name!);
      if (schedule === null || schedule.state === 'removed')
        throw new Problem('not_found', `no schedule of this target is called "${params.name}"`);
      return wholeSchedule(session, target, schedule, Date.now());
    },
  }),
];

/** A schedule without the path of its heartbeat, which is a secret. */
function withoutSecrets(schedule: Schedule): Schedule {
  return { ...schedule, heartbeat: '', toArchive: null };
}

/** The one reading of everything within reach, shared by all viewers with this reach. */
function overviewOf({ deps: { streams, session }, caller: { reach } }: Pick<Call, 'deps' | 'caller'>) {
  return streams.live(`overview ${reachKey(reach)}`, 'snapshot', () => {
    const reader = new OverviewReader(session, reach);
    return () => reader.read();
  });
}

/** An edition as the answer of a request. */
function editionAnswer({ event, text }: Edition): Response {
  if (event === 'problem') return problemAnswer(JSON.parse(text) as ProblemDocument);
  return new Response(text, { headers: { 'content-type': 'application/json' } });
}

async function listRuns({ deps, query, caller: { reach } }: Call<z.output<typeof listQuery>>) {
  const { state, target, q: text, label: labels, sort, limit, cursor } = query;
  const states = state?.split(',').map(stateOf);
  const label = labels && parsedAs('query.label', labels, labelsSetting);
  const choice = {
    sort,
    limit,
    reach,
    ...(states && { states }),
    ...(target && { target }),
    ...(label && { label }),
    ...(text && { text }),
  };
  const { runs, next } = await pageOfRuns(deps.session.redis, choice, cursor === undefined ? null : readCursor(cursor));
  const standings = await readStandings(deps.session.redis, runs);
  const now = Date.now();
  return {
    items: runs.map((run) => runSummary(run, now, { standings: standings(run) })),
    next: next && `${next.at}.${next.id}`,
  };
}

function stateOf(text: string): RunState {
  const state = runStates.find((known) => known === text);
  if (state !== undefined) return state;
  throw new Problem('invalid', `query.state: expected one of ${runStates.join(', ')}, got "${text}"`);
}

function readCursor(text: string): RunCursor {
  const [at, id] = text.split(/\.(.*)/s);
  return { at: Number(at), id: id! };
}

async function targetDetail({ session }: ApiDeps, fp: string) {
  const target = await findKnownTarget(session, fp);
  const { active } = await openRunIndex(session.redis).read();
  const [facts, workers, audit] = await Promise.all([
    targetFacts(session, target, active),
    readWorkers(session, target),
    readTargetAudit(session.redis, fp),
  ]);
  return { ...facts, workers, audit: audit.map(auditFacts) };
}
