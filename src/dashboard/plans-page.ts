import { describeError, get, post, toTrouble } from './api.ts';
import { ask, type Question } from './ask.ts';
import { count, plural } from './format.ts';
import { html, nothing } from './markup.ts';
import type { Page, Surroundings } from './page.ts';
import { alarm, table, time } from './parts.ts';
import { applyPlan, deletedBy, nameOf, planAlarm, planConfirmFields, planView } from './plan-view.ts';
import type { KeptPlan, Plan } from './types.ts';
import { mayOperate } from './words.ts';

const readEveryMs = 3_000;

/** The plans that wait, or a single plan. `id`: '' = all. It reads them again every few seconds. */
export function openPlans(id: string, { show, go, connection }: Surroundings): Page {
  let plans: KeptPlan[] | null = null;
  let plan: Plan | null = null;
  let problem = '';
  let timer = 0;
  let isOver = false;
  const read = async () => {
    if (id === '') plans = (await get<{ items: KeptPlan[] }>('/plans?all=true')).items;
    else plan = await get<Plan>(`/plans/${encodeURIComponent(id)}`);
  };
  const load = async () => {
    try {
      await read();
      if (isOver) return;
      connection('none');
    } catch (error) {
      if (isOver) return;
      if (isDecided(error)) [plan, problem] = [null, describeError(error)];
      else connection(toTrouble(error));
    }
    show();
    if (problem === '') timer = window.setTimeout(load, readEveryMs);
  };
  const close = () => {
    isOver = true;
    clearTimeout(timer);
  };
  load();
  const view = () => {
    if (problem !== '') return html`${alarm(problem)}<p><a href="/plans">See all plans</a></p>`;
    if (id !== '') return plan === null ? html`<p>Loading …</p>` : planToDecide(plan, go);
    return plans === null ? html`<p>Loading …</p>` : listOf(plans);
  };
  const title = id === '' ? 'Plans' : `Plan ${id}`;
  return { title: () => title, view: () => html`<h1>${title}</h1>${view()}`, close };
}

/** Whether the server says that the plan does not wait any more, or does not exist. */
function isDecided(error: unknown) {
  return [404, 409].includes((error as { status?: number }).status ?? 0);
}

const columns = ['Plan', 'Ids', 'Target', 'List', 'By', 'Since'];

function listOf(plans: KeptPlan[]) {
  const waiting = plans.filter(({ state }) => state === 'waiting');
  const decided = plans.filter(({ state }) => state !== 'waiting').reverse();
  const none = html`<p>No plan waits. A plan waits here if it names who approves it, or if its maker can only plan.</p>`;
  const rows = waiting.map((plan) => [...cellsOf(plan), approverOf(plan), time(plan.expires_at)]);
  return html`${waiting.length === 0 ? none : table('Plans that wait', [...columns, 'For', 'Until'], rows, [1])}
    ${
      decided.length === 0
        ? nothing
        : html`<h2>Decided</h2>${table(
            'Decided plans',
            [...columns, 'Decision'],
            decided.map((plan) => [...cellsOf(plan), decisionOf(plan)]),
            [1],
          )}`
    }`;
}

function cellsOf(plan: KeptPlan) {
  const { plan: id, state, confirm: n, name, planned_by: by, planned_at: since } = plan;
  const link = state === 'waiting' ? html`<a href="/plans/${id}">${id}</a>` : id;
  return [link, count(n), nameOf(plan), name, by, time(since)];
}

/** `ben`, `anyone with the role admin` */
function approverOf({ approve_by: approver }: Pick<KeptPlan, 'approve_by'>) {
  return approver?.replace(/^role:/, 'anyone with the role ') ?? 'anyone';
}

function decisionOf({ state, decided_by: who, decision, run }: KeptPlan) {
  const by = who === null ? '' : ` by ${who}`;
  const link = run === null ? nothing : html` as <a href="/runs/${run}">${run}</a>`;
  return html`${state}${by}${link}${decision ? `: ${decision}` : ''}`;
}

function planToDecide(plan: Plan, go: (path: string) => void) {
  const { planned_by: by, reason, may_apply: isAllowed } = plan;
  const buttons = html`<div class="buttons" role="group" aria-label="Actions">
      <button class="danger" ?disabled=${!isAllowed} @click=${() => ask(approval(plan, go))}>Approve …</button>
      <button ?disabled=${!mayOperate()} @click=${() => ask(refusal(plan, go))}>Refuse …</button></div>
    ${isAllowed ? nothing : html`<p class="soft">${whoApproves(plan)}</p>`}`;
  return html`<p>${by} made this plan ${time(plan.planned_at)}${reason ? `: ${reason}` : ''}. It waits for ${approverOf(plan)}.</p>
    ${planView(plan, buttons)}`;
}

function whoApproves(plan: Plan) {
  if (plan.approve_by === null) return 'Your login cannot approve plans: an operator can.';
  return `Only ${approverOf(plan)} can approve it, and not ${plan.planned_by}.`;
}

function approval(plan: Plan, go: (path: string) => void): Question {
  const key = crypto.randomUUID(); // makes a repeated action the same run
  return {
    title: `Approve the plan of ${plan.planned_by}?`,
    label: `Delete ${deletedBy(plan)}`,
    isDangerous: true,
    text: html`Workers delete ${plural(plan.confirm, 'ids')}. This cannot be undone. ${alarm(planAlarm(plan))}`,
    fields: planConfirmFields(plan),
    act: async (values) => {
      const made = await applyPlan(plan, values, key);
      go(`/runs/${made.run}`);
      return made;
    },
  };
}

function refusal({ plan: id, planned_by: by }: Plan, go: (path: string) => void): Question {
  return {
    title: `Refuse the plan of ${by}?`,
    label: 'Refuse the plan',
    text: `Nothing of it is deleted, and no one can approve it any more. ${by} reads the reason.`,
    act: async ({ reason }) => {
      await post(`/plans/${id}/refuse`, { reason });
      go('/plans');
    },
  };
}
