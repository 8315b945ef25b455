import { html, nothing } from '/assets/lit-html/lit-html.js';
import { post } from './api.js';
import { ask } from './ask.js';
import { count, hostOf, plural } from './format.js';
import { countOf, isSealed, mayOperate, me, sum } from './words.js';

/** @import { Question } from './ask.js' */
/** @import { Run } from './types.js' */

/** What an operator may order about a run in its state. Each order asks for a reason. @param {Run} run @param {(path: string) => void} go */
export function orderButtons(run, go) {
  const { state } = run;
  /** @param {string} name @param {boolean} isShown @param {() => void} click @param {string} [kind] */
  const button = (name, isShown, click, kind = '') =>
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

/** How many ids another run may still delete. @param {Run} run */
function leftOver(run) {
  return sum(run, ({ is_retryable }) => is_retryable);
}

/** @param {Run} run @param {string} order @param {Record<string, unknown>} body @param {Record<string, string>} [headers] */
function give({ run }, order, body, headers) {
  return post(`/runs/${run}/${order}`, body, headers);
}

/** @param {Run} run @returns {Question} */
function pauseQuestion(run) {
  return {
    title: 'Pause this run?',
    verb: 'Pause',
    text: `No more requests are sent to ${hostOf(run.target)} for it. ${plural(run.pending, 'ids')} wait until it is resumed.`,
    act: ({ reason }) => give(run, 'pause', { reason }),
  };
}

const absentChoices = ['halt it again', 'are expected'];

/** @param {Run} run @returns {Question} */
function resumeQuestion(run) {
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

/** @param {Run} run @returns {Question} */
function rateQuestion(run) {
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

/** @param {Run} run @returns {Question} */
function priorityQuestion(run) {
  return {
    title: 'Change the priority of this run',
    verb: 'Change the priority',
    text: 'Its share of the workers beside other runs of its target.',
    fields: [{ name: 'priority', label: 'Priority', choices: me.priorities, value: run.priority }],
    act: ({ reason, priority }) => give(run, 'priority', { reason, priority }),
  };
}

/** @param {Run} run @returns {Question} */
function cancelQuestion(run) {
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

/** @param {Run} run @param {(path: string) => void} go @returns {Question} */
function retryQuestion(run, go) {
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

/** A field that takes nothing but this number, so that nobody agrees to what was not read. @param {number} n @param {string} what */
export function typed(n, what) {
  return {
    name: 'number',
    label: `Type the number of ${what}: ${count(n)}`,
    isNumber: true,
    mustBe: n < 1_000 ? String(n) : `${n}|${count(n)}`,
  };
}
