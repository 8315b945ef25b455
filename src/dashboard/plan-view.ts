import { address, post } from './api.ts';
import { count, duration, parseHost, plural } from './format.ts';
import { html, nothing, visibleId } from './markup.ts';
import { type Content, facts, idText, table, time, word } from './parts.ts';
import { confirmation, confirmFields } from './run-actions.ts';
import type { Plan, Target } from './types.ts';
import { idsInWords } from './words.ts';

/** A plan, with `content` below it. */
export function planView(plan: Plan, content: Content) {
  const { counts, rejected, first, expected, starts_after_seconds: startsAfter, confirm: n } = plan;
  const reasons = Object.entries(rejected).filter(([, many]) => many > 0);
  return html`<section id="plan" class="card" aria-labelledby="the-plan"><h2 id="the-plan">The plan</h2>
    ${facts([
      ['list', plan.name],
      ['target', html`<b>${parseHost(plan.target)}</b> ${plan.account}`],
      ['rows', count(counts.rows ?? 0)],
      ['ids to delete', html`<b>${count(n)}</b>`],
      ['for example', plan.samples.map(visibleId).join(', ')],
      ['shapes', shapesOf(plan)],
      ['duplicates', counts.duplicate ? count(counts.duplicate) : ''],
      ['protected', counts.protected ? count(counts.protected) : ''],
      ['rejected', reasons.map(([code, many]) => `${code} ${count(many)}`).join(', ')],
      ['first request', first ? html`<code>DELETE ${first.url}</code>` : 'none'],
      ['answers', plan.record.proof.join('; ')],
      ['rules', rulesOf(plan).join(', ')],
      ['starts', startsAfter > 0 ? `${duration(startsAfter)} after it is accepted` : ''],
      ['takes', forecastText(expected)],
      ['ends', expected.ends_at ? time(expected.ends_at) : ''],
      ['valid until', time(plan.expires_at)],
    ])}
    ${rejectedTable(plan)}
    ${n === 0 ? html`<p><b>${nothingIn(plan)}</b> Nothing was sent.</p>` : content}
  </section>`;
}

/** `about 20 min, at the 83/s learned just now` */
function forecastText({ seconds, seconds_from: least, because }: Plan['expected']) {
  const bound = seconds === null ? 'at least' : 'about';
  return [`${bound} ${duration(seconds ?? least ?? 0)}`, ...because].join(', ');
}

/** `api.example.com/v2 (main)`: a target with its account. */
export function nameOf({ target, account }: Pick<Target, 'target' | 'account'>) {
  return `${parseHost(target)}${account ? ` (${account})` : ''}`;
}

/** `3 annotations at api.example.com/v2` */
export function deletedBy(plan: Plan) {
  return `${idsInWords(plan.counts)} at ${nameOf(plan)}`;
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

/** Has a plan carried out. `values`: the values of its fields, and the reason; `key`: makes a repeated action the same run. */
export function applyPlan(plan: Plan, values: Record<string, string>, key: string) {
  const seen = {
    ...(isUnprotected(plan) && { expect_unprotected: 'true' }),
    ...(plan.looks.odd > 0 && { allow_mixed_ids: 'true' }),
  };
  const body = { ...confirmation(values), ...seen };
  return post<{ run: string }>(`/plans/${plan.plan}/apply`, body, { 'idempotency-key': key });
}

/** The fields that a person has to type before a plan is carried out. */
export function planConfirmFields({ confirm: n, protected_host: host }: Plan) {
  return confirmFields(n, 'ids to delete', host);
}

/** Warns the person who confirms a plan in which no id is protected, although the server protects some, or some ids look unlike the others. */
export function planAlarm(plan: Plan) {
  const read = `None of the ${count(plan.protected_read ?? 0)} ids that the server protects is in this list. Is it the right one?`;
  const odd = `${plural(plan.looks.odd, 'ids')} of this list ${plan.looks.odd === 1 ? 'looks' : 'look'} unlike the others. Are they ids?`;
  return [isUnprotected(plan) ? read : '', plan.looks.odd > 0 ? odd : ''].filter(Boolean).join(' ');
}

/** What the ids look like, if they have several shapes; the place of the first one that looks unlike the others. */
function shapesOf({ looks: { shapes } }: Plan) {
  if (shapes.length < 2) return '';
  const place = (line: number) => ` (line ${count(line)})`;
  return shapes
    .map(
      ({ count: ids, like, line, is_odd: isOdd }) => `${count(ids)} like ${visibleId(like)}${isOdd ? place(line) : ''}`,
    )
    .join(' · ');
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
