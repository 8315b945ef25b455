import { html, nothing, render } from '/assets/lit-html/lit-html.js';
import { wordsOf } from './api.js';
import { alarm } from './parts.js';

/** @import { Content } from './parts.js' */

/**
 * @typedef {{ name: string, label: string, hint?: string, value?: string, choices?: readonly string[], isOptional?: boolean,
 *   isNumber?: boolean, mustBe?: string }} Field
 * @typedef {{ title: string, text?: Content, fields?: Field[], verb: string, isDangerous?: boolean,
 *   act: (values: Record<string, string>) => Promise<unknown> }} Question
 */

/** The question that the dialog shows. @type {Question | null} */
let asked = null;

const reasonField = { name: 'reason', label: 'Reason', hint: 'stands in the audit trail' };

/** Asks in a dialog for a reason and what else an order needs, and gives it. What the server refuses is told in the dialog. @param {Question} question */
export function ask(question) {
  const dialog = /** @type {HTMLDialogElement} */ (document.querySelector('dialog'));
  const fields = [...(question.fields ?? []), reasonField];
  /** @param {string} problem @param {boolean} isBusy */
  const show = (problem, isBusy) => render(formOf(question, fields, { problem, isBusy, submit }), dialog);
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    const values = new FormData(/** @type {HTMLFormElement} */ (event.target));
    show('', true);
    try {
      const done = await question.act(Object.fromEntries([...values].map(([name, value]) => [name, String(value)])));
      if (isAsked()) dialog.close();
      tell(done);
    } catch (error) {
      if (isAsked()) show(wordsOf(error), false);
      else notice(`It is not done: ${question.verb}`, [wordsOf(error)]);
    }
  };
  const isAsked = () => asked === question && dialog.open; // else its page was left meanwhile
  asked = question;
  render(nothing, dialog); // no value of the last question stays in a field
  show('', false);
  dialog.showModal();
  /** @type {HTMLElement | null} */ (dialog.querySelector('input, select'))?.focus();
}

/** Shows in a dialog what the server warns of; nothing where it does not. @param {unknown} answer */
export function tell(answer) {
  const { warnings = [] } = /** @type {{ warnings?: string[] }} */ (answer ?? {});
  if (warnings.length > 0) notice('It is done, but mind this', warnings);
}

/** Closes the dialog. */
export function leaveQuestion() {
  /** @type {HTMLDialogElement} */ (document.querySelector('dialog')).close();
}

/** @param {string} title @param {string[]} alarms */
function notice(title, alarms) {
  asked = null;
  const dialog = /** @type {HTMLDialogElement} */ (document.querySelector('dialog'));
  render(
    html`<form method="dialog" aria-labelledby="question"><h2 id="question">${title}</h2>
      ${alarms.map(alarm)}
      <p class="buttons"><button class="main" autofocus>Close</button></p></form>`,
    dialog,
  );
  dialog.showModal();
}

/** @typedef {{ problem: string, isBusy: boolean, submit: (event: SubmitEvent) => void }} Answering */

/** @param {Question} question @param {Field[]} fields @param {Answering} answering */
function formOf({ title, text, verb, isDangerous }, fields, { problem, isBusy, submit }) {
  return html`<form @submit=${submit} autocomplete="off" aria-labelledby="question">
    <h2 id="question">${title}</h2>
    ${text ? html`<p>${text}</p>` : nothing}
    ${fields.map(fieldOf)}
    ${alarm(problem)}
    <p class="buttons">
      <button class=${isDangerous ? 'danger' : 'main'} ?disabled=${isBusy}>${verb}</button>
      <button type="button" @click=${leaveQuestion}>Leave it</button>
    </p></form>`;
}

/** @param {Field} field */
export function fieldOf({ name, label, hint, value = '', choices, isOptional, isNumber, mustBe }) {
  const id = `field-${name}`;
  const about = hint ? html`<small id="${id}-hint">${hint}</small>` : nothing;
  const control = choices
    ? html`<select id=${id} name=${name} aria-describedby="${id}-hint">${choices.map(
        (choice) => html`<option ?selected=${choice === value}>${choice}</option>`,
      )}</select>`
    : html`<input id=${id} name=${name} value=${value} ?required=${!isOptional} maxlength="500" pattern=${mustBe ?? nothing}
        title=${mustBe ? `type ${mustBe}` : nothing} inputmode=${isNumber ? 'numeric' : nothing} aria-describedby="${id}-hint">`;
  return html`<p class="field"><label for=${id}>${label}</label>${control}${about}</p>`;
}
