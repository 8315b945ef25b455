import { capital, sentence, withoutFlags } from './format.ts';
import { html, nothing } from './markup.ts';
import { type Content, time } from './parts.ts';
import type { RunSummary, Standing } from './types.ts';
import { isSealed, mayOperate } from './words.ts';

/** The button that ends what holds a run back, by its cause; what has none is ended by a command. */
const buttons: Partial<Record<Standing['why'], string>> = {
  planned: 'Resume',
  canary: 'Resume',
  halted: 'Resume',
  paused: 'Resume',
  dead_command: 'Leave to workers',
  unreadable_rate: 'Rate',
  run_quota: 'Rate',
  run_rate: 'Rate',
  stop: 'Start',
  retry_after: 'Release',
  circuit: 'Release',
  outage: 'Release',
};

const ofTarget = ['Start', 'Release'];

/** The same, of a long text only the first clause: the page of the run has the others. */
export function shortStandstill(run: RunSummary): Content {
  const { standing } = run;
  if (!standing) return standstillOf(run);
  const [clause, rest] = clausesOf(withoutFlags(standing.text));
  return standingOf(run, { ...standing, text: clause }, rest === '' ? '' : html`<a href="/runs/${run.run}">More</a>.`);
}

/** Why a run that has not ended does not move; nothing while it does. */
export function standstillOf(run: RunSummary): Content {
  if (run.standing) {
    const [text, rest] = clausesOf(withoutFlags(run.standing.text));
    return standingOf(run, { ...run.standing, text }, rest);
  }
  const isStill = run.per_second === 0 && !isSealed(run);
  return isStill ? html`No id has had an outcome in the last seconds: <a href="/runs/${run.run}">why</a>` : nothing;
}

/** What holds it back, since or until when, and what ends it. */
function standingOf(run: RunSummary, { why, text, since, until, next }: Standing, rest: Content): Content {
  const when = until ? html` until ${time(until)}` : since ? html`, since ${time(since)}` : nothing;
  return html`<b class="bad">${capital(text)}</b>${when}. ${rest === '' ? nothing : html`${rest} `}${next ? endOf(run, buttons[why], next) : nothing}`;
}

const longest = 160;

/** The first clause of a long text, and the others as sentences; a short text as it is. */
function clausesOf(text: string): [string, string] {
  const end = text.length > longest ? text.search(/[;.] /) : -1;
  if (end === -1) return [text.replace(/\.$/, ''), ''];
  return [text.slice(0, end), sentence(text.slice(end + 2))];
}

function endOf({ run }: RunSummary, button: string | undefined, next: string): Content {
  if (button === undefined) return next.startsWith('expunge ') ? html`In a terminal: <code>${next}</code>` : `${next}.`;
  if (!mayOperate()) return 'An operator can end that.';
  return ofTarget.includes(button)
    ? html`<b>${button}</b> of its <a href="/#targets">target</a> ends that.`
    : html`<b>${button}</b> on <a href="/runs/${run}">its page</a> ends that.`;
}
