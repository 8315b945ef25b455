import { html, nothing } from '/assets/lit-html/lit-html.js';
import { post } from './api.js';
import { ask } from './ask.js';
import { count, hostOf, plural, rate } from './format.js';
import { host, table, time } from './parts.js';
import { mayOperate, me } from './words.js';

/** @import { Content } from './parts.js' */
/** @import { RunSummary, Schedule, Standing, Target, Worker } from './types.js' */

// What stands around the runs: the APIs that they delete from, the processes that do it, and the schedules that make more.

/** @param {Target[]} targets */
export function targetSection(targets) {
  const resting = targets.filter(isAtRest);
  const none = 'None is known yet: a run or a worker brings its target.';
  return html`${section('Targets', targetRows(targets.filter((target) => !isAtRest(target))), targetNames(), resting.length > 0 ? 'None has a run or a worker now.' : none, [3, 4])}
    ${
      resting.length > 0
        ? html`<details><summary>${plural(resting.length, 'targets')} without a run or a worker</summary>
      ${table('Targets without a run or a worker', targetNames(), targetRows(resting), [3, 4])}</details>`
        : nothing
    }`;
}

/** Whether nobody needs to look at it now. @param {Target} target */
function isAtRest({ runs = {}, processes, stop, pinned, budget }) {
  return Object.keys(runs).length === 0 && processes === 0 && !stop && !pinned && !budget;
}

function targetNames() {
  return ['Target', 'Runs', 'State', 'Rate', 'Processes', ...orders('Orders')];
}

/** @param {Target[]} targets */
function targetRows(targets) {
  return targets.map((target) => [
    placeOf(target),
    runsOf(target),
    conditionsOf(target),
    target.per_second === null ? '–' : rate(target.per_second),
    count(target.processes),
    ...orders(targetButtons(target)),
  ]);
}

/** Only who may give orders has a column of them. @template {Content} T @param {T} cell @returns {T[]} */
function orders(cell) {
  return mayOperate() ? [cell] : [];
}

/** A target with its account. @param {{ target: string, account: string }} place */
function placeOf({ target, account }) {
  return html`${host(target)}${account ? html`<br><span class="soft">${account}</span>` : nothing}`;
}

/** `2 running, 1 halted` @param {Target} target */
function runsOf({ runs = {} }) {
  const words = Object.entries(runs).map(([state, n]) => `${count(n)} ${state}`);
  return words.join(', ') || '–';
}

/** Why a run that has not ended does not move. @param {RunSummary} run */
export function standstillOf({ run, standing, per_second: perSecond }) {
  if (standing) return standingOf(standing);
  return perSecond === 0 ? html`No id has had an outcome in the last seconds: <a href="/runs/${run}">why</a>` : nothing;
}

/** What holds it back, until when, and the command that ends it. @param {Standing} standing */
function standingOf({ text, until, next }) {
  return html`<b class="bad">${text}</b>${until ? html` until ${time(until)}` : nothing}${next ? html`: <code>${next}</code>` : nothing}`;
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
  return words.length === 0 ? 'ready' : html`<ul class="plain">${words.map((word) => html`<li>${word}</li>`)}</ul>`;
}

/** @param {Target} target */
function targetButtons(target) {
  const { fp, stop, limiters, revision } = target;
  const isHeld = limiters.some(({ hold, outage }) => hold?.why === 'retry_after' || outage); // nothing else can be released
  /** @param {string} order @param {string} title @param {string} text */
  const order = (order, title, text) => () =>
    ask({
      title: `${title} ${hostOf(target.target)}?`,
      text,
      verb: title,
      isDangerous: order === 'stop',
      act: ({ reason }) => post(`/targets/${fp}/${order}`, order === 'start' ? { reason, seen: revision } : { reason }),
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

/** @param {Worker[]} workers */
export function workerSection(workers) {
  const rows = workers.map((worker) => [worker.process, placeOf(worker), loadOf(worker), time(worker.seen_at)]);
  const none = html`None is at work. Detached runs and schedules need one: <code>expunge worker --base-url URL</code>`;
  return section('Workers', rows, ['Worker', 'Target', 'Load', 'Last seen'], none);
}

/** @param {Worker} worker */
function loadOf({ stop, slots }) {
  if (stop) return html`<b class="bad">Stopped</b>: ${stop.reason}`;
  return slots === null ? 'idle' : `at work, up to ${plural(slots, 'requests')} at once`;
}

/** @param {Schedule[]} schedules */
export function scheduleSection(schedules) {
  /** @type {Content[][]} */
  const rows = schedules.map((schedule) => [
    html`<b>${schedule.name}</b><br><span class="soft">${host(schedule.target)}</span>`,
    html`${schedule.state}${schedule.reason ? html`<br><span class="soft">${schedule.reason}</span>` : nothing}`,
    html`<span title=${schedule.cron}>${schedule.when}</span>`,
    time(schedule.next),
    lastOf(schedule),
    ...orders(scheduleButtons(schedule)),
  ]);
  const none = html`None. In a terminal: <code>expunge schedule add NAME --cron '0 3 * * *' --from SOURCE</code>`;
  return section('Schedules', rows, ['Schedule', 'State', 'When', 'Next slot', 'Last slot', ...orders('Orders')], none);
}

/** @param {Schedule} schedule @returns {Content} */
function lastOf({ history: [last] }) {
  if (!last) return '–';
  const link = last.run ? html` <a href="/runs/${last.run}">${last.run}</a>` : nothing;
  const reason = last.reason ? html`<br><span class="soft">${last.reason}</span>` : nothing;
  return html`${time(last.slot)} ${last.result}${link}${reason}`;
}

const elsewhere = 'Only workers of its target have its list: order it on the pages of one of them.';

/** @param {Schedule} schedule @returns {Content} */
function scheduleButtons({ fp, name, state, revision }) {
  if (state === 'removed') return nothing;
  /** @param {string} order @param {string} verb @param {string} text @param {string} [hindrance] */
  const button = (order, verb, text, hindrance = '') => {
    const path = `/schedules/${fp}/${encodeURIComponent(name)}/${order}`;
    const title = `${verb} the schedule ${name}?`;
    const act = (/** @type {Record<string, string>} */ { reason }) =>
      post(path, order === 'pause' ? { reason } : { reason, seen: revision });
    return html`<button ?disabled=${hindrance !== ''} title=${hindrance || nothing} @click=${() => ask({ title, text, verb, act })}>${verb} …</button>`;
  };
  return html`<span class="buttons">
    ${
      state === 'paused'
        ? button('resume', 'Resume', 'Its slots have runs again.')
        : button('pause', 'Pause', 'No slot has a run until it is resumed.')
    }
    ${button('run', 'Run now', 'Makes a run of the list as it is now, as for a slot.', me.worker_of === fp ? '' : elsewhere)}
  </span>`;
}

/** `none`: what stands there without a row. @param {string} title @param {Content[][]} rows @param {string[]} names @param {Content} none @param {number[]} [numbers] */
function section(title, rows, names, none, numbers) {
  const id = title.toLowerCase();
  return html`<section aria-labelledby=${id}><h2 id=${id}>${title} <span class="soft">${count(rows.length)}</span></h2>
    ${rows.length > 0 ? table(title, names, rows, numbers) : html`<p class="soft">${none}</p>`}</section>`;
}
