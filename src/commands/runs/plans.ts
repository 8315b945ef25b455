import { settingsOfTarget } from '../../config/check-target.ts';
import { count, isoTime } from '../../format.ts';
import { approverText } from '../../model/approver.ts';
import { anyResource } from '../../model/resource.ts';
import { visibleLine } from '../../model/visible.ts';
import { findPlanIn, type PlanAnswer, type PlanFacts } from '../../operations/kept-plan.ts';
import type { ListAction } from '../../operations/list-action.ts';
import type { PlanOperations } from '../../operations/operations.ts';
import { deletedText } from '../../terminal/plan-text.ts';
import { columns, tableFit } from '../../terminal/style.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { askCount, askHost, askYes, infoWriter, lineWriter, readBy, toListAction, writeWarnings } from '../session.ts';
import { withOperations } from '../with-operations.ts';
import { waitText, writePlan } from './show-plan.ts';

/** `plans`: lists the plans that wait to be approved, shows one, and approves, refuses or withdraws it. */
export async function execute(invocation: Invocation): Promise<number> {
  const [, action = 'list'] = invocation.commandName.split(' ');
  return withOperations(invocation, 'plans', async (plans) => {
    if (action === 'list') return list(invocation, plans);
    const plan = findPlanIn(await plans.list(), invocation.args[0]!);
    return actions[action as keyof typeof actions](invocation, plans, plan);
  });
}

const actions = { show, approve, refuse, withdraw };

async function list({ options, toType, stdout, env }: Invocation, plans: PlanOperations): Promise<number> {
  const all = (await plans.list()).filter(({ state }) => options.all === true || state === 'waiting');
  const print = jsonLines(stdout, options.json);
  for (const plan of all) print('plan', plan);
  if (options.json) return 0;
  const none = `No plan waits. Make one: ${toType('plan', 'FILE', '--resource', anyResource, '--base-url', 'URL')}`;
  const fit = tableFit(stdout, env, ['LIST', 'UNTIL', 'TARGET']);
  const head = ['PLAN', 'IDS', 'TARGET', 'LIST', 'BY', 'SINCE', 'UNTIL', options.all ? 'STATE' : 'FOR'];
  const rows = all.map((plan) => [...cellsOf(plan), options.all ? stateText(plan) : whoText(plan)]);
  stdout.write(`${all.length === 0 ? none : columns([head, ...rows], fit)}\n`);
  return 0;
}

function cellsOf({ plan, confirm, target, name, planned_by, planned_at, expires_at }: PlanFacts): string[] {
  const host = new URL(target).host;
  return [
    plan,
    count(confirm),
    host,
    visibleLine(name),
    visibleLine(planned_by),
    minuteOf(planned_at),
    minuteOf(expires_at),
  ];
}

/** `2026-11-20T16:02Z` */
function minuteOf(time: string): string {
  return isoTime(Date.parse(time)).replace(/:\d\d(\.\d+)?Z$/, 'Z');
}

function whoText({ approve_by: approver }: PlanFacts): string {
  return approver === null ? 'anyone' : visibleLine(approverText(approver));
}

function stateText({ state, decided_by: who, run }: PlanFacts): string {
  const by = who === null ? '' : ` by ${visibleLine(who)}`;
  return `${state}${by}${run === null ? '' : ` as ${run}`}`;
}

async function show(invocation: Invocation, plans: PlanOperations, { plan: id }: PlanFacts): Promise<number> {
  const { options, stdout } = invocation;
  const shown = await plans.show(id);
  const { record, ...facts } = shown;
  if (options.json) jsonLines(stdout, true)('plan', facts);
  else write(invocation, stdout, shown);
  return 0;
}

function write({ toType }: Invocation, out: NodeJS.WriteStream, shown: PlanAnswer): void {
  const { plan, planned_by: planner, reason } = shown;
  writePlan(out, shown.record, toType);
  out.write(`Plan ${plan} of ${visibleLine(planner)} ${waitText(shown)}${reason && `: ${visibleLine(reason)}`}\n`);
}

async function approve(invocation: Invocation, plans: PlanOperations, { plan: id }: PlanFacts): Promise<number> {
  const { options, toType, stdout, stderr } = invocation;
  const shown = await plans.show(id);
  write(invocation, stderr, shown);
  await askCount(invocation, shown.confirm, deletedText(shown.record));
  const confirmHost = await askHost(invocation, { baseUrl: shown.target }, shown.protected_host);
  const action = actionFor({ ...invocation, options: { ...options, confirmHost } }, shown);
  const { run, warnings } = await plans.apply(id, action, shown.confirm);
  const whose = `plan ${id} of ${visibleLine(shown.planned_by)}`;
  lineWriter(stderr)(`Approved ${whose}. Run ${run} is left to the workers: ${count(shown.confirm)} ids.`);
  infoWriter(invocation)(`  Follow it: ${toType('status', run, '--watch')}`);
  writeWarnings(stderr, warnings, toType);
  jsonLines(stdout, options.json)('approved', { plan: id, run, ids: shown.confirm, planned_by: shown.planned_by });
  return 0;
}

/** The action for the run of a plan, which names the target: no token is sent from here. Other settings that name another target are refused. */
function actionFor(invocation: Invocation, { target: baseUrl, account }: PlanAnswer): ListAction {
  const action = toListAction(invocation);
  const place = settingsOfTarget({ baseUrl, account });
  return {
    ...action,
    config: action.config.baseUrl === undefined ? Object.freeze({ ...action.config, ...place }) : action.config,
    options: { ...action.options, detach: true },
    command: '',
    newRunOnly: true,
  };
}

async function refuse(invocation: Invocation, plans: PlanOperations, { plan: id }: PlanFacts): Promise<number> {
  const { options, stdout, stderr } = invocation;
  const by = readBy(invocation);
  const refused = await plans.refuse(id, by);
  lineWriter(stderr)(`Refused plan ${id} of ${visibleLine(refused.planned_by)}. No one can apply it any more.`);
  jsonLines(stdout, options.json)('plan', refused);
  return 0;
}

async function withdraw(invocation: Invocation, plans: PlanOperations, plan: PlanFacts): Promise<number> {
  const { options, stdout, stderr } = invocation;
  const whose = `plan ${plan.plan} of ${visibleLine(plan.planned_by)}`;
  await askYes(invocation, `Forget ${whose} and its list?`);
  await plans.withdraw(plan.plan, readBy(invocation));
  lineWriter(stderr)(`Forgot ${whose}. Nothing was sent.`);
  jsonLines(stdout, options.json)('withdrawn', { plan: plan.plan });
  return 0;
}
