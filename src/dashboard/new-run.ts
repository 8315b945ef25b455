import { describeError, get, postFile, toTrouble } from './api.ts';
import { renderField, tell } from './ask.ts';
import { size } from './format.ts';
import { html, nothing } from './markup.ts';
import type { Page, Surroundings } from './page.ts';
import { alarm } from './parts.ts';
import { planFields } from './plan-fields.ts';
import { applyPlan, deletedBy, nameOf, planAlarm, planConfirmFields, planView } from './plan-view.ts';
import type { Plan, Target } from './types.ts';

/** Makes a run of a list: the list is read, its plan is shown, and nothing is sent before the number of ids is typed. */
export function openNewRun({ show, go, connection }: Surroundings): Page {
  const newRun = new NewRun(show, go);
  let timer = 0;
  let isOver = false;
  const load = () =>
    newRun.loadTargets().then(
      () => isOver || connection('none'),
      (error) => {
        if (isOver) return;
        connection(toTrouble(error));
        timer = window.setTimeout(load, retryMs);
      },
    );
  const close = () => {
    isOver = true;
    clearTimeout(timer);
  };
  load();
  return { title: () => 'New run', view: () => newRun.view(), close };
}

const retryMs = 2_000;

class NewRun {
  #targets: Target[] | null = null;
  #file: File | null = null;
  #plan: Plan | null = null;
  /** Increases with every change of the form: a plan is valid only for the form it was made from. */
  #version = 0;
  /** Makes a repeated action the same run. */
  #key = '';
  #problem = '';
  #busy = '';
  #isOver = false;
  #show;
  #go;

  constructor(show: () => void, go: (path: string) => void) {
    this.#show = show;
    this.#go = go;
  }

  async loadTargets() {
    const found = await get<{ items: Target[] }>('/targets');
    this.#targets = found.items;
    this.#show();
  }

  /** Does one thing at a time: the second click of a double click comes before the buttons are redrawn. */
  async #try(busy: string, task: () => Promise<void>) {
    if (this.#busy !== '') return;
    [this.#busy, this.#problem] = [busy, ''];
    this.#show();
    try {
      await task();
    } catch (error) {
      this.#problem = describeError(error);
    }
    this.#busy = '';
    this.#show();
  }

  #take(file: File | undefined) {
    this.#file = file ?? null;
    this.#dropPlan();
  }

  /** Drops the plan, also while it is being made: the form has changed. */
  #dropPlan() {
    this.#version += 1;
    [this.#plan, this.#problem] = [null, ''];
    this.#show();
  }

  #read(event: SubmitEvent) {
    event.preventDefault();
    const file = this.#file;
    if (!file) {
      this.#problem = 'Expected a list, got none → choose a file';
      this.#show();
      return;
    }
    const values = new FormData(event.currentTarget as HTMLFormElement);
    const options = [...values]
      .map(([name, value]) => [name, String(value).trim()])
      .filter(([name, value]) => value && name !== 'list');
    options.push(['name', plainName(file.name)]);
    const type = typeOf(file.name);
    if (type === undefined) {
      this.#problem = `Expected a file whose name ends with ${endings}, got ${file.name} → rename it`;
      this.#show();
      return;
    }
    this.#try(`Reading ${file.name} …`, async () => {
      const version = this.#version;
      const plan = await postFile<Plan>(`/plans?${new URLSearchParams(options)}`, file, type).catch((error) => {
        if (version === this.#version) throw error;
        return null;
      });
      if (plan === null || version !== this.#version) return;
      this.#plan = plan;
      this.#key = crypto.randomUUID();
      setTimeout(() => document.querySelector('#plan')?.scrollIntoView({ block: 'start' }), 50);
    });
  }

  #apply(event: SubmitEvent, plan: Plan) {
    event.preventDefault();
    const given = [...new FormData(event.currentTarget as HTMLFormElement)];
    const values = Object.fromEntries(given.map(([name, value]) => [name, String(value)]));
    this.#try('Making the run …', async () => {
      const made = await applyPlan(plan, values, this.#key);
      this.#go(`/runs/${made.run}`);
      tell(made);
    });
  }

  view() {
    return html`<h1>New run</h1>${this.#targets === null ? html`<p>Loading …</p>` : this.#form(this.#targets)}
      ${this.#plan ? planView(this.#plan, this.#plan.waits ? waiting(this.#plan) : this.#confirmation(this.#plan)) : nothing}`;
  }

  #form(targets: Target[]) {
    if (targets.length === 0)
      return html`<p>No target is known yet. Start a worker of the API in a terminal: <code>expunge worker --base-url URL</code></p>`;
    return html`<form class="new" @submit=${(event: SubmitEvent) => this.#read(event)} @input=${() => this.#dropPlan()}>
      ${this.#dropZone()}
      <p class="field"><label for="target">Target</label><select id="target" name="target">${targets.map(
        (target) =>
          html`<option value=${target.fp}>${nameOf(target)}${target.processes > 0 ? '' : ' – no worker now'}</option>`,
      )}</select></p>
      ${planFields('list')}
      <details ?open=${/“(no header|delimiter)”/.test(this.#problem)}><summary>How the list is written</summary>
        ${planFields('writing')}
      </details>
      <details><summary>More settings</summary>
        ${planFields('more')}
        ${renderField({ name: 'approve_by', label: 'Approved by', hint: 'another person, or role:admin; the plan then waits', isOptional: true })}
      </details>
      ${this.#plan ? nothing : alarm(this.#problem)}
      <p class="buttons"><button class=${this.#plan ? '' : 'main'} ?disabled=${this.#busy !== ''}>Show the plan</button>
        <span class="soft" role="status">${this.#busy || 'Nothing is sent yet.'}</span></p>
    </form>`;
  }

  #dropZone() {
    const file = this.#file;
    const drag = (event: DragEvent, isOver: boolean) => {
      event.preventDefault();
      this.#isOver = isOver;
      this.#show();
    };
    const drop = (event: DragEvent) => {
      drag(event, false);
      this.#take(event.dataTransfer?.files[0]);
    };
    const choose = (event: Event) => this.#take((event.target as HTMLInputElement).files?.[0]);
    return html`<div class="drop ${this.#isOver ? 'over' : ''}" @drop=${drop}
      @dragover=${(event: DragEvent) => drag(event, true)} @dragleave=${(event: DragEvent) => drag(event, false)}>
      <label for="list">List of ids</label>
      <input id="list" name="list" type="file" accept=${accepted} @change=${choose} aria-describedby="list-hint">
      <p class="soft">${file ? `${file.name}, ${size(file.size)}` : 'Choose a file, or drop one here.'}</p>
      <small id="list-hint">CSV, plain lines (.txt), NDJSON or JSON, also compressed (.gz, .zst)</small></div>`;
  }

  #confirmation(plan: Plan) {
    return html`<form autocomplete="off" @submit=${(event: SubmitEvent) => this.#apply(event, plan)}>
      ${planConfirmFields(plan).map(renderField)}
      ${renderField({ name: 'reason', label: 'Reason', hint: 'is recorded in the audit trail' })}
      ${alarm(planAlarm(plan))}
      ${alarm(this.#problem)}
      <p class="buttons"><button class="danger" ?disabled=${this.#busy !== ''}>Delete ${deletedBy(plan)}</button>
        <span class="soft">This cannot be undone.</span></p></form>`;
  }
}

/** What follows after a plan that another person approves. */
function waiting({ plan, approve_by: approver }: Plan) {
  const whose = approver === null ? '' : ` for ${approver}`;
  return html`<p role="status"><b>Nothing was sent.</b> The plan waits${whose}: <a href="/plans/${plan}">plan ${plan}</a>.</p>`;
}

/** The content type for a list, by the ending of its name. */
const types: Record<string, string> = {
  '.csv': 'text/csv',
  '.tsv': 'text/tab-separated-values',
  '.txt': 'text/plain',
  '.ndjson': 'application/x-ndjson',
  '.jsonl': 'application/x-ndjson',
  '.json': 'application/json',
};

const endings = Object.keys(types).join(', ');
const accepted = [...Object.keys(types), '.gz', '.zst'].join();

function typeOf(name: string): string | undefined {
  const [ending = ''] = /\.\w+$/.exec(name.toLowerCase().replace(/\.(gz|zst)$/, '')) ?? [];
  return types[ending];
}

/** The name of a file in a form that the server takes. */
function plainName(name: string) {
  return (
    name
      .replace(/\.(gz|zst)$/i, '')
      .replace(/\.\w+$/, '')
      .replace(/[^\w. -]/g, '_')
      .replace(/^[^\w-]+/, '')
      .slice(0, 100) || 'list'
  );
}
