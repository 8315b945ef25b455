import { post } from './api.ts';
import { ask } from './ask.ts';
import { count, parseHost, plural, rate } from './format.ts';
import { html, nothing } from './markup.ts';
import type { Content } from './parts.ts';
import { host, table, time } from './parts.ts';
import type { Schedule, Target, Worker } from './types.ts';
import { mayOperate, me } from './words.ts';

// What surrounds the runs: the APIs that they delete from, the processes that do it, and the schedules that make more runs.

export function targetSection(targets: Target[]) {
  const resting = targets.filter(isAtRest);
  const none = 'No target is known yet: the first run or worker of a target adds it.';
  return html`${section('Targets', targetRows(targets.filter((target) => !isAtRest(target))), targetNames(), resting.length > 0 ? 'No target has a run or a worker now.' : none, [3, 4])}
    ${
      resting.length > 0
        ? html`<details><summary>${plural(resting.length, 'targets')} without a run or a worker</summary>
      ${table('Targets without a run or a worker', targetNames(), targetRows(resting), [3, 4])}</details>`
        : nothing
    }`;
}

/** Whether the target needs no attention now. */
function isAtRest({ runs = {}, processes, stop, limit, min_grace: grace }: Target) {
  return Object.keys(runs).length === 0 && processes === 0 && !stop && !limit && !grace;
}

function targetNames() {
  return ['Target', 'Runs', 'State', 'Rate', 'Processes', ...actions('Actions')];
}

function targetRows(targets: Target[]) {
  return targets.map((target) => [
    placeOf(target),
    runsOf(target),
    conditionsOf(target),
    target.per_second === null ? '–' : rate(target.per_second),
    count(target.processes),
    ...actions(targetButtons(target)),
  ]);
}

/** A column of actions, only for people who may take them. */
function actions<T extends Content>(cell: T): T[] {
  return mayOperate() ? [cell] : [];
}

/** A target with its account. */
function placeOf({ target, account }: { target: string; account: string }) {
  return html`${host(target)}${account ? html`<br><span class="soft">${account}</span>` : nothing}`;
}

/** `2 running, 1 halted` */
function runsOf({ runs = {} }: Target) {
  const words = Object.entries(runs).map(([state, n]) => `${count(n)} ${state}`);
  return words.join(', ') || '–';
}

/** The conditions that hold a target, in words. */
function conditionsOf(target: Target) {
  const { stop, limiter, runs, processes, limit, min_grace: grace, stopped_processes: stopped } = target;
  const words: Content[] = [
    ...(runs.running && processes === 0 ? [html`<b class="bad">No process</b> deletes its runs`] : []),
    ...(stop
      ? [html`<b class="bad">Stopped</b> by ${stop.who || stop.by}: ${stop.reason}, since ${time(stop.at)}`]
      : []),
    ...(stopped > 0 ? [`${plural(stopped, 'processes')} stopped by a file`] : []),
    ...(limiter?.hold ? [html`<b>Waits</b> until ${time(limiter.hold.until)}: ${limiter.hold.reason}`] : []),
    ...(limiter?.outage
      ? [html`<b class="bad">Circuit open</b> since ${time(limiter.outage.since)}: ${limiter.outage.reason}`]
      : []),
    ...(limit ? [limitWords(limit)] : []),
    ...(grace ? [`Grace of at least ${grace.grace} by ${grace.who}: ${grace.reason}`] : []),
  ];
  return words.length === 0 ? 'ready' : html`<ul class="plain">${words.map((word) => html`<li>${word}</li>`)}</ul>`;
}

/** `Limit 200/s,100000/day, used 250, by ana: as agreed` */
function limitWords({ rate: text, used, who, reason }: NonNullable<Target['limit']>) {
  const quotas = used.length > 0 ? `, used ${used.map(count).join(', ')}` : '';
  return `Limit ${text}${quotas}, by ${who}${reason ? `: ${reason}` : ''}`;
}

function targetButtons(target: Target) {
  const { fp, stop, limiter, revision } = target;
  const isHeld = limiter?.hold?.why === 'retry_after' || limiter?.outage; // only these can be released
  const opens = (action: string, title: string, text: string) => () =>
    ask({
      title: `${title} ${parseHost(target.target)}?`,
      text,
      label: title,
      isDangerous: action === 'stop',
      act: ({ reason }) =>
        post(`/targets/${fp}/${action}`, action === 'start' ? { reason, seen: revision } : { reason }),
    });
  return html`<span class="buttons">
    ${
      stop
        ? html`<button @click=${opens('start', 'Start', 'All its runs continue, on every machine.')}>Start …</button>`
        : html`<button @click=${opens('stop', 'Stop', 'No run sends to it any more, and neither does any new run, until it is started.')}>Stop …</button>`
    }
    ${isHeld ? html`<button @click=${opens('release', 'Release', 'Ends the wait that the server asked for, or an open circuit.')}>Release …</button>` : nothing}
  </span>`;
}

export function workerSection(workers: Worker[]) {
  const rows = workers.map((worker) => [worker.process, placeOf(worker), loadOf(worker), time(worker.seen_at)]);
  const none = html`No worker is running. Detached runs and schedules need one: <code>expunge worker --base-url URL</code>`;
  return section('Workers', rows, ['Worker', 'Target', 'Load', 'Last seen'], none);
}

function loadOf({ stop, connections }: Worker) {
  if (stop) return html`<b class="bad">Stopped</b>: ${stop.reason}`;
  return connections === null ? 'idle' : `at work, up to ${plural(connections, 'requests')} at once`;
}

export function scheduleSection(schedules: Schedule[]) {
  const rows: Content[][] = schedules.map((schedule) => [
    html`<b>${schedule.name}</b><br><span class="soft">${host(schedule.target)}</span>`,
    html`${schedule.state}${schedule.reason ? html`<br><span class="soft">${schedule.reason}</span>` : nothing}`,
    html`<span title=${schedule.cron}>${schedule.when}</span>`,
    time(schedule.next),
    lastOf(schedule),
    ...actions(scheduleButtons(schedule)),
  ]);
  const none = html`None. In a terminal: <code>expunge schedule add NAME --cron '0 3 * * *' --from SOURCE --resource ${me.resources[0]} --max-deletes N --base-url URL</code>`;
  return section(
    'Schedules',
    rows,
    ['Schedule', 'State', 'When', 'Next occurrence', 'Last occurrence', ...actions('Actions')],
    none,
  );
}

function lastOf({ history: [last] }: Schedule): Content {
  if (!last) return '–';
  const link = last.run ? html` <a href="/runs/${last.run}">${last.run}</a>` : nothing;
  const reason = last.reason ? html`<br><span class="soft">${last.reason}</span>` : nothing;
  return html`${time(last.occurrence)} ${last.result}${link}${reason}`;
}

const elsewhere = 'Only workers of its target have its list: start it on the pages of one of them.';

function scheduleButtons({ fp, name, state, revision }: Schedule): Content {
  if (state === 'removed') return nothing;
  const button = (action: string, label: string, text: string, hindrance = '') => {
    const path = `/schedules/${fp}/${encodeURIComponent(name)}/${action}`;
    const title = `${label} the schedule ${name}?`;
    const act = ({ reason }: Record<string, string>) =>
      post(path, action === 'pause' ? { reason } : { reason, seen: revision });
    return html`<button ?disabled=${hindrance !== ''} title=${hindrance || nothing} @click=${() => ask({ title, text, label, act })}>${label} …</button>`;
  };
  return html`<span class="buttons">
    ${
      state === 'paused'
        ? button('resume', 'Resume', 'Its occurrences have runs again.')
        : button('pause', 'Pause', 'No occurrence has a run until it is resumed.')
    }
    ${button('run', 'Run now', 'Makes a run of the list as it is now, as for an occurrence.', me.worker_of === fp ? '' : elsewhere)}
  </span>`;
}

/** A section with a table. `none`: the text if it has no rows. */
function section(title: string, rows: Content[][], names: string[], none: Content, numbers?: number[]) {
  const id = title.toLowerCase();
  return html`<section aria-labelledby=${id}><h2 id=${id}>${title} <span class="soft">${count(rows.length)}</span></h2>
    ${rows.length > 0 ? table(title, names, rows, numbers) : html`<p class="soft">${none}</p>`}</section>`;
}
