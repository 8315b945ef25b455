import { count, isoTime } from '../../format.ts';
import { approverText } from '../../model/approver.ts';
import { anyResource } from '../../model/resource.ts';
import { visibleLine } from '../../model/visible.ts';
import { findPlanIn, type PlanFacts } from '../../operations/kept-plan.ts';
import type { PlanOperations } from '../../operations/operations.ts';
import { columns, tableFit } from '../../terminal/style.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { askYes, lineWriter, readBy } from '../session.ts';
import { withOperations } from '../with-operations.ts';
import { writeWaiting } from './show-plan.ts';

/** `plans`: lists the plans that wait to be approved, shows one, and refuses or withdraws it. */
export async function execute(invocation: Invocation): Promise<number> {
  const [, action = 'list'] = invocation.commandName.split(' ');
  return withOperations(invocation, 'plans', async (plans) => {
    if (action === 'list') return list(invocation, plans);
    const plan = findPlanIn(await plans.list(), invocation.args[0]!);
    return actions[action as keyof typeof actions](invocation, plans, plan);
  });
}

const actions = { show, refuse, withdraw };

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
  else writeWaiting(invocation, stdout, shown);
  return 0;
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
