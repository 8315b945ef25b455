import { html, nothing } from '/assets/lit-html/lit-html.js';
import { post } from './api.js';
import { ask } from './ask.js';
import { count, hostOf, plural, rate } from './format.js';
import { table, time } from './parts.js';
import { mayOperate } from './words.js';

/** @import { Content } from './parts.js' */
/** @import { Schedule, Target, Worker } from './types.js' */

// What stands around the runs: the APIs that they delete from, the processes that do it, and the schedules that make more.

/** @param {Target[]} targets */
export function targetSection(targets) {
  const rows = targets.map((target) => [
    html`<b>${hostOf(target.target)}</b>${target.account ? html`<br><span class="soft">${target.account}</span>` : nothing}`,
    target.per_second === null ? 'not known yet' : rate(target.per_second),
    conditionsOf(target),
    count(target.processes),
    mayOperate() ? targetButtons(target) : '',
  ]);
  return section('Targets', rows, ['Target', 'Rate', 'State', 'Processes', 'Orders'], [1, 3]);
}

/** What holds a target, in words. @param {Target} target */
function conditionsOf({ stop, limiters, pinned, budget, stopped_processes: stopped }) {
  /** @param {string} scope */
  const of = (scope) => (limiters.length > 1 ? `${scope}: ` : '');
  /** @type {Content[]} */
  const words = [
    ...(stop
      ? [html`<b class="bad">Stopped</b> by ${stop.who || stop.by}: ${stop.reason}, since ${time(stop.at)}`]
      : []),
    ...(stopped > 0 ? [`${plural(stopped, 'processes')} stopped by a file`] : []),
    ...limiters.flatMap(({ scope, hold, outage }) => [
      ...(hold ? [html`<b>Waits</b> until ${time(hold.until)}: ${of(scope)}${hold.reason}`] : []),
      ...(outage
        ? [html`<b class="bad">Circuit open</b> since ${time(outage.since)}: ${of(scope)}${outage.reason}`]
        : []),
    ]),
    ...(pinned ? [`Pinned to ${pinned.rate} by ${pinned.who}: ${pinned.reason}`] : []),
    ...(budget ? [`Budget ${budget.rate}, used ${(budget.used ?? []).map(count).join(', ')}`] : []),
  ];
  return words.length === 0 ? 'open' : html`<ul class="plain">${words.map((word) => html`<li>${word}</li>`)}</ul>`;
}

/** @param {Target} target */
function targetButtons(target) {
  const { fp, stop, limiters } = target;
  const isHeld = limiters.some(({ hold, outage }) => hold || outage);
  /** @param {string} order @param {string} title @param {string} text */
  const order = (order, title, text) => () =>
    ask({
      ...{ title: `${title} ${hostOf(target.target)}?`, text, verb: title, isDangerous: order === 'stop' },
      act: ({ reason }) => post(`/targets/${fp}/${order}`, { reason }),
    });
  return html`<span class="buttons">
    ${
      stop
        ? html`<button @click=${order('start', 'Start', 'All its runs go on, on every machine.')}>Start …</button>`
        : html`<button @click=${order('stop', 'Stop', 'No run sends to it any more, also none to come, until it is started.')}>Stop …</button>`
    }
    ${isHeld ? html`<button @click=${order('release', 'Release', 'Ends the wait that the server asked for, or an open circuit.')}>Release …</button>` : nothing}
  </span>`;
}

/** What is known of a worker depends on the release that it runs. @param {Worker[]} workers */
export function workerSection(workers) {
  const known = /** @type {const} */ (['runs', 'in_flight', 'per_second']).filter((name) =>
    workers.some((worker) => typeof worker[name] === 'number'),
  );
  const columns = { runs: 'Runs', in_flight: 'In flight', per_second: 'Rate' };
  const rows = workers.map((worker) => [
    worker.process,
    html`<b>${hostOf(worker.target)}</b>${worker.account ? html`<br><span class="soft">${worker.account}</span>` : nothing}`,
    worker.stop ? html`<b class="bad">Stopped</b>: ${worker.stop.reason}` : 'at work',
    ...known.map((name) => loadOf(name, worker[name])),
    time(worker.seen_at),
  ]);
  const names = ['Worker', 'Target', 'State', ...known.map((name) => columns[name]), 'Last seen'];
  return section(
    'Workers',
    rows,
    names,
    known.map((_, i) => 3 + i),
  );
}

/** @param {string} name @param {number | null | undefined} n */
function loadOf(name, n) {
  if (n === null || n === undefined) return '–';
  return name === 'per_second' ? rate(n) : count(n);
}

/** @param {Schedule[]} schedules */
export function scheduleSection(schedules) {
  /** @type {Content[][]} */
  const rows = schedules.map((schedule) => [
    html`<b>${schedule.name}</b><br><span class="soft">${hostOf(schedule.target)}</span>`,
    html`${schedule.state}${schedule.reason ? html`<br><span class="soft">${schedule.reason}</span>` : nothing}`,
    html`<span title=${schedule.cron}>${schedule.when}</span>`,
    time(schedule.next),
    lastOf(schedule),
    mayOperate() ? scheduleButtons(schedule) : '',
  ]);
  return section('Schedules', rows, ['Schedule', 'State', 'When', 'Next slot', 'Last slot', 'Orders']);
}

/** @param {Schedule} schedule @returns {Content} */
function lastOf({ history: [last] }) {
  if (!last) return '–';
  const link = last.run ? html` <a href="/runs/${last.run}">${last.run}</a>` : nothing;
  const reason = last.reason ? html`<br><span class="soft">${last.reason}</span>` : nothing;
  return html`${time(last.slot)} ${last.ended?.state ?? last.outcome}${link}${reason}`;
}

/** @param {Schedule} schedule @returns {Content} */
function scheduleButtons({ fp, name, state }) {
  if (state === 'removed') return nothing;
  /** @param {string} order @param {string} verb @param {string} text */
  const button = (order, verb, text) => {
    const path = `/schedules/${fp}/${encodeURIComponent(name)}/${order}`;
    const title = `${verb} the schedule ${name}?`;
    const act = (/** @type {Record<string, string>} */ { reason }) => post(path, { reason });
    return html`<button @click=${() => ask({ title, text, verb, act })}>${verb} …</button>`;
  };
  return html`<span class="buttons">
    ${
      state === 'paused'
        ? button('resume', 'Resume', 'Its slots have runs again.')
        : button('pause', 'Pause', 'No slot has a run until it is resumed.')
    }
    ${button('run', 'Run now', 'Makes a run of the list as it is now, as for a slot.')}
  </span>`;
}

/** @param {string} title @param {Content[][]} rows @param {string[]} names @param {number[]} [numbers] */
function section(title, rows, names, numbers) {
  const id = title.toLowerCase();
  return html`<section aria-labelledby=${id}><h2 id=${id}>${title} <span class="soft">${count(rows.length)}</span></h2>
    ${rows.length > 0 ? table(title, names, rows, numbers) : html`<p class="soft">None.</p>`}</section>`;
}
