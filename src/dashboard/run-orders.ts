import { html, nothing } from '/assets/lit-html/lit-html.js';
import { post } from './api.ts';
import { ask, type Question } from './ask.ts';
import { count, hostOf, plural } from './format.ts';
import type { Run } from './types.ts';
import { countOf, isSealed, mayOperate, me, sum } from './words.ts';

/** What an operator may order about a run in its state. Each order asks for a reason. */
export function orderButtons(run: Run, go: (path: string) => void) {
  const { state } = run;
  const button = (name: string, isShown: boolean, click: () => void, kind = '') =>
    isShown ? html`<button class=${kind} ?disabled=${!mayOperate()} @click=${click}>${name} …</button>` : nothing;
  const isOpen = !isSealed(run) && state !== 'cancelling';
  const isGoing = ['planned', 'running'].includes(state);
  return html`<div class="buttons orders" role="group" aria-label="Orders">
      ${button('Pause', isGoing, () => ask(pauseQuestion(run)))}
      ${button('Resume', ['paused', 'halted'].includes(state), () => ask(resumeQuestion(run)), 'main')}
      ${button('Rate', isOpen, () => ask(rateQuestion(run)))}
      ${button('Priority', isOpen && run.detached, () => ask(priorityQuestion(run)))}
      ${button('Retry failed', isSealed(run) && leftOver(run) > 0, () => ask(retryQuestion(run, go)))}
      ${button('Cancel', isOpen, () => ask(cancelQuestion(run)), 'danger')}
    </div>
    ${mayOperate() || (isSealed(run) && leftOver(run) === 0) ? nothing : html`<p class="soft">Your token may only read: an operator can give orders.</p>`}`;
}

/** How many ids another run may still delete. */
function leftOver(run: Run) {
  return sum(run, ({ is_retryable }) => is_retryable);
}

function give({ run }: Run, order: string, body: Record<string, unknown>, headers?: Record<string, string>) {
  return post<{ run: string }>(`/runs/${run}/${order}`, body, headers);
}

function pauseQuestion(run: Run): Question {
  return {
    title: 'Pause this run?',
    verb: 'Pause',
    text: `No more requests are sent to ${hostOf(run.target)} for it. ${plural(run.pending, 'ids')} wait until it is resumed.`,
    act: ({ reason }) => give(run, 'pause', { reason }),
  };
}

const absentChoices = ['halt it again', 'are expected'];

function resumeQuestion(run: Run): Question {
  return {
    title: 'Resume this run?',
    verb: 'Resume',
    text: html`It deletes the ${plural(run.pending, 'ids')} that are left at <b>${hostOf(run.target)}</b>.
      ${run.detached ? nothing : 'Its command has to be there, or is typed again.'}`,
    fields:
      run.halt === 'all_absent' ? [{ name: 'absent', label: 'Ids that are not there', choices: absentChoices }] : [],
    act: ({ reason, absent }) =>
      give(run, 'resume', { reason, seen: run.revision, expect_absent: absent === absentChoices[1] }),
  };
}

function rateQuestion(run: Run): Question {
  const now = typeof run.settings?.rate === 'string' ? run.settings.rate : '';
  return {
    title: 'Change the rate of this run',
    verb: 'Change the rate',
    text: `Now ${now || 'none of its own: it goes as fast as the API allows'}.`,
    fields: [
      { name: 'rate', label: 'Rate', hint: '200/s, 3000/min; empty for none of its own', value: now, isOptional: true },
    ],
    act: ({ reason, rate }) => give(run, 'rate', { reason, rate: rate?.trim() || null }),
  };
}

function priorityQuestion(run: Run): Question {
  return {
    title: 'Change the priority of this run',
    verb: 'Change the priority',
    text: 'Its share of the workers beside other runs of its target.',
    fields: [{ name: 'priority', label: 'Priority', choices: me.priorities, value: run.priority }],
    act: ({ reason, priority }) => give(run, 'priority', { reason, priority }),
  };
}

function cancelQuestion(run: Run): Question {
  const left = run.pending;
  return {
    title: `Cancel run ${run.run}?`,
    verb: 'Cancel the run',
    isDangerous: true,
    text: html`It ends for good. <b>${plural(left, 'ids')}</b> at <b>${hostOf(run.target)}</b> have no outcome yet and are left; what is deleted
      stays deleted.`,
    fields: [typed(left, 'ids that are left')],
    act: ({ reason, number }) =>
      give(run, 'cancel', { reason, left: Number(number?.replaceAll(',', '')), shown: left }),
  };
}

function retryQuestion(run: Run, go: (path: string) => void): Question {
  const words = me.outcomes.filter((word) => word.is_retryable && countOf(run, word) > 0);
  const key = { 'idempotency-key': crypto.randomUUID() }; // the same order twice makes the same run
  return {
    title: 'Retry what failed?',
    verb: 'Make the run',
    isDangerous: true,
    text: html`A new run sends ${plural(leftOver(run), 'ids')} to <b>${hostOf(run.target)}</b> again:
      ${words.map((word) => `${count(countOf(run, word))} ${word.outcome}`).join(', ')}.`,
    fields: [typed(leftOver(run), 'ids that are retried')],
    act: async ({ reason, number }) => {
      const confirm = Number(number?.replaceAll(',', ''));
      const made = await give(run, 'retry', { reason, confirm, only: words.map(({ outcome }) => outcome) }, key);
      go(`/runs/${made.run}`);
      return made;
    },
  };
}

/** A field that takes nothing but this number, so that nobody agrees to what was not read. */
export function typed(n: number, what: string) {
  return {
    name: 'number',
    label: `Type the number of ${what}: ${count(n)}`,
    isNumber: true,
    mustBe: n < 1_000 ? String(n) : `${n}|${count(n)}`,
  };
}
