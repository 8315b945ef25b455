import { post } from './api.ts';
import { ask, type Question } from './ask.ts';
import { count, duration, parseHost, plural } from './format.ts';
import { html, nothing } from './markup.ts';
import type { Run } from './types.ts';
import { countOutcome, isFinalized, mayOperate, me, sum } from './words.ts';

/** The actions that an operator can take on a run in its state. Each action asks for a reason. */
export function actionButtons(run: Run, go: (path: string) => void) {
  const { state } = run;
  const button = (name: string, isShown: boolean, click: () => void, kind = '') =>
    isShown ? html`<button class=${kind} ?disabled=${!mayOperate()} @click=${click}>${name} …</button>` : nothing;
  const isOpen = !isFinalized(run) && state !== 'cancelling';
  const isGoing = ['planned', 'running'].includes(state);
  return html`<div class="buttons actions" role="group" aria-label="Actions">
      ${button('Pause', isGoing, () => ask(pauseQuestion(run)))}
      ${button('Resume', ['planned', 'paused', 'halted'].includes(state), () => ask(resumeQuestion(run)), 'main')}
      ${button('Leave to workers', run.abandoned, () => ask(leaveQuestion(run)), 'main')}
      ${button('Rate', isOpen, () => ask(rateQuestion(run)))}
      ${button('Retry', isFinalized(run) && leftOver(run) > 0, () => ask(retryQuestion(run, go)))}
      ${button('Cancel', isOpen, () => ask(cancelQuestion(run)), 'danger')}
      ${isOpen ? countdown(run) : nothing}
    </div>
    ${mayOperate() || (isFinalized(run) && leftOver(run) === 0) ? nothing : html`<p class="soft">Your token has the role ${me.role}: actions need the role operate.</p>`}`;
}

/** The time until the run sends its first request; nothing after that. */
function countdown({ starts_in_seconds: seconds }: Run) {
  return seconds === null
    ? nothing
    : html`<span role="timer">nothing is sent for another <b>${duration(Math.ceil(seconds))}</b></span>`;
}

/** Number of ids that another run could still delete. */
function leftOver(run: Run) {
  return sum(run, ({ is_retryable }) => is_retryable);
}

function give({ run }: Run, action: string, body: Record<string, unknown>, headers?: Record<string, string>) {
  return post<{ run: string }>(`/runs/${run}/${action}`, body, headers);
}

function pauseQuestion(run: Run): Question {
  return {
    title: 'Pause this run?',
    label: 'Pause',
    text: `No more requests are sent to ${parseHost(run.target)} for it. ${plural(run.pending, 'ids')} wait until it is resumed.`,
    act: ({ reason }) => give(run, 'pause', { reason }),
  };
}

const whoChoices = ['the workers of its target', 'its command, typed again in a terminal'];

/** Who deletes the run: no one if its command has ended. */
function whoField({ detached, has_command: hasCommand }: Run) {
  if (detached || hasCommand === true) return [];
  const hint = hasCommand === false ? 'its command has ended' : 'it is not known whether its command still runs';
  return [{ name: 'who', label: 'Deleted by', hint, choices: whoChoices }];
}

function leaveQuestion(run: Run): Question {
  return {
    title: 'Leave this run to workers?',
    label: 'Leave to workers',
    text: html`Its command has ended, so nothing deletes it. The workers of <b>${parseHost(run.target)}</b> delete the
      ${plural(run.pending, 'ids')} that are left.`,
    act: ({ reason }) => give(run, 'resume', { reason, seen: run.revision, detach: true }),
  };
}

const absentChoices = ['halt it again', 'are expected'];

function resumeQuestion(run: Run): Question {
  return {
    title: 'Resume this run?',
    label: 'Resume',
    text: html`It deletes the ${plural(run.pending, 'ids')} that are left at <b>${parseHost(run.target)}</b>.
      ${run.has_command === true ? 'Its command is there, and continues.' : nothing}`,
    fields: [
      ...whoField(run),
      ...(run.halt === 'all_absent'
        ? [{ name: 'absent', label: 'Ids that are not there', choices: absentChoices }]
        : []),
    ],
    act: ({ reason, absent, who }) =>
      give(run, 'resume', {
        reason,
        seen: run.revision,
        expect_absent: absent === absentChoices[1],
        detach: who === whoChoices[0],
      }),
  };
}

function rateQuestion(run: Run): Question {
  const now = typeof run.settings?.rate === 'string' ? run.settings.rate : '';
  return {
    title: 'Change the rate of this run',
    label: 'Change the rate',
    text: now
      ? html`This run sends at most <b>${now}</b>. The limit of its target holds as well.`
      : 'This run has no limit of its own: it is as fast as its target allows.',
    fields: [
      {
        name: 'rate',
        label: 'At most',
        hint: 'like 200/s or 3000/min; leave it empty for no limit of its own',
        value: now,
        isOptional: true,
      },
    ],
    act: ({ reason, rate }) => give(run, 'rate', { reason, rate: rate?.trim() || null }),
  };
}

function cancelQuestion(run: Run): Question {
  const left = run.pending;
  return {
    title: `Cancel run ${run.run}?`,
    label: 'Cancel the run',
    isDangerous: true,
    text: html`It ends for good. <b>${plural(left, 'ids')}</b> at <b>${parseHost(run.target)}</b> have no outcome yet and are left; what is deleted
      stays deleted.`,
    fields: [typed(left, 'ids that are left')],
    act: ({ reason, number }) => give(run, 'cancel', { reason, left: readNumber(number), shown: left }),
  };
}

function retryQuestion(run: Run, go: (path: string) => void): Question {
  const words = me.outcomes.filter((word) => word.is_retryable && countOutcome(run, word) > 0);
  const key = { 'idempotency-key': crypto.randomUUID() }; // makes a repeated action the same run
  const chosenOf = (checked: string[]) => sum(run, ({ outcome }) => checked.includes(outcome));
  return {
    title: 'Which ids are to be sent again?',
    label: 'Make the run',
    isDangerous: true,
    text: html`A new run sends them to <b>${parseHost(run.target)}</b>.`,
    checks: words.map((word) => ({
      value: word.outcome,
      label: html`${word.outcome} <b>${count(countOutcome(run, word))}</b><br><small>${word.means}</small>`,
      isChecked: !(word.is_left && run.state === 'cancelled'), // ids of a cancelled run: they may have been left on purpose
    })),
    fields: (checked) =>
      checked.length === 0 ? [] : confirmFields(chosenOf(checked), 'ids that are sent again', run.protected_host),
    act: async (values, only) => {
      const made = await give(run, 'retry', { ...confirmation(values), only }, key);
      go(`/runs/${made.run}`);
      return made;
    },
  };
}

/** The fields that a person has to type before ids are sent. `host`: the host of a protected target; null = none. */
export function confirmFields(n: number, what: string, host: string | null) {
  return [typed(n, what), ...(host === null ? [] : [typedHost(host)])];
}

/** The typed values of these fields, and the reason, as the API takes them. */
export function confirmation({ number, host, reason }: Record<string, string>) {
  return { confirm: readNumber(number), reason, ...(host && { confirm_host: host }) };
}

function readNumber(text = '') {
  return Number(text.replaceAll(',', ''));
}

/** A field that accepts only this number, so that the person has to read it. */
function typed(n: number, what: string) {
  return {
    name: 'number',
    label: `Type the number of ${what}: ${count(n)}`,
    isNumber: true,
    mustBe: n < 1_000 ? String(n) : `${n}|${count(n)}`,
  };
}

/** A field that accepts only the host name of a protected target. */
function typedHost(host: string) {
  return {
    name: 'host',
    label: `This target is protected. Type its host name: ${host}`,
    mustBe: host.replace(/[.[\]]/g, '\\$&'),
  };
}
