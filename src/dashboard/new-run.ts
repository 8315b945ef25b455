import { address, describeError, get, post, postFile, toTrouble } from './api.ts';
import { renderField, tell } from './ask.ts';
import { count, duration, parseHost, plural, size } from './format.ts';
import { html, nothing, visibleId } from './markup.ts';
import type { Page, Surroundings } from './page.ts';
import { alarm, facts, idText, table, time, word } from './parts.ts';
import { planFields } from './plan-fields.ts';
import { typed, typedHost } from './run-actions.ts';
import type { Plan, Target } from './types.ts';
import { me } from './words.ts';

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
    const values = new FormData(event.currentTarget as HTMLFormElement);
    const confirm = Number(String(values.get('number')).replaceAll(',', ''));
    this.#try('Making the run …', async () => {
      const made = await post<{ run: string }>(
        `/plans/${plan.plan}/apply`,
        {
          confirm,
          reason: String(values.get('reason')),
          ...(isUnprotected(plan) && { expect_unprotected: 'true' }),
          ...(plan.protected_host && { confirm_host: String(values.get('host')) }),
        },
        { 'idempotency-key': this.#key },
      );
      this.#go(`/runs/${made.run}`);
      tell(made);
    });
  }

  view() {
    return html`<h1>New run</h1>${this.#targets === null ? html`<p>Loading …</p>` : this.#form(this.#targets)}
      ${this.#plan ? this.#planView(this.#plan) : nothing}`;
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

  #planView(plan: Plan) {
    const { counts, duplicates, rejected, first, forecast, starts_after_seconds: startsAfter, confirm: n } = plan;
    const reasons = Object.entries(rejected).filter(([, many]) => many > 0);
    const { seconds } = forecast;
    return html`<section id="plan" class="card" aria-labelledby="the-plan"><h2 id="the-plan">The plan</h2>
      ${facts([
        ['list', plan.name],
        ['target', html`<b>${parseHost(plan.target)}</b> ${plan.account}`],
        ['rows', count(counts.rows ?? 0)],
        ['ids to delete', html`<b>${count(n)}</b>`],
        ['for example', plan.samples.map(visibleId).join(', ')],
        ['duplicates', duplicates > 0 ? count(duplicates) : ''],
        ['protected', counts.protected ? count(counts.protected) : ''],
        ['rejected', reasons.map(([code, many]) => `${code} ${count(many)}`).join(', ')],
        ['first request', first ? html`<code>DELETE ${first.url}</code>` : 'none'],
        ['rules', rulesOf(plan).join(', ')],
        ['starts', startsAfter > 0 ? `${duration(startsAfter)} after it is accepted` : ''],
        ['forecast', seconds === null ? 'not known without a rate' : `at least ${duration(seconds)}`],
        ['code', html`<code>${plan.code}</code>`],
        ['valid until', time(plan.expires_at)],
      ])}
      ${rejectedTable(plan)}
      ${n === 0 ? html`<p><b>${nothingIn(plan)}</b> Nothing was sent.</p>` : this.#confirmation(plan)}
    </section>`;
  }

  #confirmation(plan: Plan) {
    const n = plan.confirm;
    return html`<form autocomplete="off" @submit=${(event: SubmitEvent) => this.#apply(event, plan)}>
      ${renderField(typed(n, 'ids to delete'))}
      ${plan.protected_host ? renderField(typedHost(plan.protected_host)) : nothing}
      ${renderField({ name: 'reason', label: 'Reason', hint: 'is recorded in the audit trail' })}
      ${alarm(isUnprotected(plan) ? `None of the ${count(plan.protected_read ?? 0)} ids that the server protects is in this list. Is it the right one?` : '')}
      ${alarm(this.#problem)}
      <p class="buttons"><button class="danger" ?disabled=${this.#busy !== ''}>Delete ${deletedBy(plan)}</button>
        <span class="soft">This cannot be undone.</span></p></form>`;
  }
}

/** `api.example.com/v2 (main)`: a target with its account. */
function nameOf({ target, account }: Pick<Target, 'target' | 'account'>) {
  return `${parseHost(target)}${account ? ` (${account})` : ''}`;
}

/** `3 annotations at api.example.com/v2` */
function deletedBy(plan: Plan) {
  const { counts } = plan;
  const kinds = me.resources.filter((resource) => counts[resource] > 0);
  return `${kinds.map((resource) => plural(counts[resource], resource)).join(' and ')} at ${nameOf(plan)}`;
}

/** The rules that differ from their default: `rate 200/s`; a rule without a value is only named. */
function rulesOf({ changed_rules: rules = {} }: Plan) {
  return Object.entries(rules).map(([flag, value]) => {
    const name = flag.replace(/^--/, '').replaceAll('-', ' ');
    return value === 'true' ? name : `${name} ${value}`;
  });
}

/** The reason why a plan deletes nothing. */
function nothingIn({ counts }: Plan) {
  const { rows = 0, rejected = 0, protected: kept = 0 } = counts;
  if (rows === 0) return 'The list holds no rows.';
  if (rejected === rows) return 'No row of the list holds a usable id.';
  return kept > 0 ? 'All ids of the list are protected.' : 'No id of the list is to be deleted.';
}

/** Whether the server protects ids, but none of them is in the list: the person who confirms the plan is warned. */
function isUnprotected({ protected_read: read, counts }: Plan) {
  return typeof read === 'number' && !counts.protected;
}

function rejectedTable({ plan, rejected_samples: rows, counts: { rejected = rows.length } }: Plan) {
  if (rows.length === 0) return nothing;
  const all = html`<p class="soft"><a href=${address(`/plans/${plan}/rejects`)} download>Download all ${count(rejected)}</a></p>`;
  const fields = rows.map(({ line, id, code, reason }) => [
    String(line),
    idText(id),
    html`${word(code)} <small>${reason}</small>`,
  ]);
  return html`<h3>Rejected rows <span class="soft">${count(rejected)}</span></h3>${table('Rejected rows', ['Line', 'Value', 'Why'], fields, [0], 'flow')}${all}`;
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
