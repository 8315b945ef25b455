import { describeError } from './api.ts';
import { html, nothing, render } from './markup.ts';
import { alarm, type Content } from './parts.ts';

/** A field of a question. `mustBe`: the pattern of valid values. */
export type Field = {
  name: string;
  label: string;
  hint?: string;
  value?: string;
  choices?: readonly string[];
  isOptional?: boolean;
  isNumber?: boolean;
  mustBe?: string;
};

/** A box of a question, and whether it is initially checked. */
type Check = { value: string; label: Content; isChecked: boolean };

/** The question before an action. `fields` depend on the boxes that are checked; there may be none if the action needs a box. */
export type Question = {
  title: string;
  text?: Content;
  checks?: Check[];
  fields?: Field[] | ((checked: string[]) => Field[]);
  label: string;
  isDangerous?: boolean;
  act: (values: Record<string, string>, checked: string[]) => Promise<unknown>;
};

/** The question in the dialog. */
let asked: Question | null = null;

const reasonField = { name: 'reason', label: 'Reason', hint: 'is recorded in the audit trail' };

/** Asks in a dialog for a reason and what else an action needs, then sends the action. A refusal by the server is shown in the dialog. */
export function ask(question: Question) {
  const dialog = document.querySelector('dialog') as HTMLDialogElement;
  const show = (problem: string, isBusy: boolean) =>
    render(formOf(question, checkedOf(question, dialog), { problem, isBusy, submit, change }), dialog);
  const change = () => show('', false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const values = new FormData(event.target as HTMLFormElement);
    const checked = checkedOf(question, dialog);
    show('', true);
    try {
      const given = Object.fromEntries([...values].map(([name, value]) => [name, String(value)]));
      const done = await question.act(given, checked);
      if (isAsked()) dialog.close();
      tell(done);
    } catch (error) {
      if (isAsked()) show(describeError(error), false);
      else notice(`Not done: ${question.label}`, [describeError(error)]);
    }
  };
  const isAsked = () => asked === question && dialog.open; // false once its page has been left
  asked = question;
  render(nothing, dialog); // clears the values of the last question
  show('', false);
  dialog.showModal();
  (dialog.querySelector('input, select') as HTMLElement | null)?.focus();
}

/** Shows the warnings of an answer in a dialog; nothing if there are none. */
export function tell(answer: unknown) {
  const { warnings = [] } = (answer ?? {}) as { warnings?: string[] };
  if (warnings.length > 0) notice('It is done, with a warning', warnings);
}

/** Closes the dialog. */
export function leaveQuestion() {
  (document.querySelector('dialog') as HTMLDialogElement).close();
}

function notice(title: string, alarms: string[]) {
  asked = null;
  const dialog = document.querySelector('dialog') as HTMLDialogElement;
  render(
    html`<form method="dialog" aria-labelledby="question"><h2 id="question">${title}</h2>
      ${alarms.map(alarm)}
      <p class="buttons"><button class="main" autofocus>Close</button></p></form>`,
    dialog,
  );
  dialog.showModal();
}

/** The boxes that are checked in the dialog, or will be once it is drawn. */
function checkedOf({ checks = [] }: Question, dialog: HTMLDialogElement) {
  const boxes = [...dialog.querySelectorAll<HTMLInputElement>('input[name=check]')];
  if (boxes.length === 0) return checks.filter(({ isChecked }) => isChecked).map(({ value }) => value);
  return boxes.filter(({ checked }) => checked).map(({ value }) => value);
}

type Answering = {
  problem: string;
  isBusy: boolean;
  submit: (event: SubmitEvent) => void;
  change: () => void;
};

function formOf(question: Question, checked: string[], { problem, isBusy, submit, change }: Answering) {
  const { title, text, label, isDangerous, checks = [], fields = [] } = question;
  const asked = typeof fields === 'function' ? fields(checked) : fields;
  const isReady = !isBusy && (checks.length === 0 || checked.length > 0);
  return html`<form @submit=${submit} autocomplete="off" aria-labelledby="question">
    <h2 id="question">${title}</h2>
    ${text ? html`<p>${text}</p>` : nothing}
    ${checks.length > 0 ? html`<fieldset @change=${change}><legend>Which ids</legend>${checks.map(renderCheck)}</fieldset>` : nothing}
    ${[...asked, reasonField].map(renderField)}
    ${alarm(problem)}
    <p class="buttons">
      <button class=${isDangerous ? 'danger' : 'main'} ?disabled=${!isReady}>${label}</button>
      <button type="button" @click=${leaveQuestion}>Leave it</button>
    </p></form>`;
}

function renderCheck({ value, label, isChecked }: Check) {
  return html`<label class="check"><input type="checkbox" name="check" value=${value} ?checked=${isChecked}> <span>${label}</span></label>`;
}

export function renderField({ name, label, hint, value = '', choices, isOptional, isNumber, mustBe }: Field) {
  const id = `field-${name}`;
  const about = hint ? html`<small id="${id}-hint">${hint}</small>` : nothing;
  const control = choices
    ? html`<select id=${id} name=${name} aria-describedby="${id}-hint">${choices.map(
        (choice) => html`<option value=${choice} ?selected=${choice === value}>${choice}</option>`,
      )}</select>`
    : html`<input id=${id} name=${name} value=${value} ?required=${!isOptional} maxlength="500" pattern=${mustBe ?? nothing}
        title=${mustBe ? `type ${mustBe.replaceAll('|', ' or ')}` : nothing} inputmode=${isNumber ? 'numeric' : nothing} aria-describedby="${id}-hint">`;
  return html`<p class="field"><label for=${id}>${label}</label>${control}${about}</p>`;
}
