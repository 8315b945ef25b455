import { capital, sentence, withoutFlags } from './format.ts';
import { html, nothing } from './markup.ts';
import { type Content, time } from './parts.ts';
import type { RunSummary, Standing } from './types.ts';
import { isFinalized, mayOperate } from './words.ts';

/** The button that ends each cause; a cause without a button is ended by a command. */
const buttons: Partial<Record<Standing['why'], string>> = {
  planned: 'Resume',
  canary: 'Resume',
  halted: 'Resume',
  paused: 'Resume',
  dead_command: 'Leave to workers',
  grace: 'Cancel',
  unreadable_rate: 'Rate',
  run_quota: 'Rate',
  run_rate: 'Rate',
  stop: 'Start',
  retry_after: 'Release',
  circuit: 'Release',
  outage: 'Release',
};

const ofTarget = ['Start', 'Release'];

/**
 * Why an unfinished run makes no progress; nothing while it does. Of a long text it shows only the first clause: the page of the run has the others.
 */
export function shortStandstill(run: RunSummary): Content {
  const { standing } = run;
  const page = `/runs/${run.run}`;
  if (standing) {
    const [text, rest] = clausesOf(withoutFlags(standing.text));
    const more = rest === '' ? '' : html`<a href=${page}>More</a>.`;
    return standingOf({ ...standing, text }, more, html` on <a href=${page}>its page</a>`);
  }
  const isStill = run.per_second === 0 && !isFinalized(run);
  return isStill ? html`No id has had an outcome in the last seconds: <a href=${page}>why</a>` : nothing;
}

/** The whole text, for the page of the run, which has the buttons. */
export function renderStandstill(standing: Standing): Content {
  const [text, rest] = clausesOf(withoutFlags(standing.text));
  return standingOf({ ...standing, text }, rest, nothing);
}

/** What holds the run back, since or until when, and what ends it. `place`: where the buttons of the run are, unless they are here. */
function standingOf({ why, text, since, until, next }: Standing, rest: Content, place: Content): Content {
  const when = until ? html` until ${time(until)}` : since ? html`, since ${time(since)}` : nothing;
  return html`<b class="bad">${capital(text)}</b>${when}. ${rest === '' ? nothing : html`${rest} `}${next ? endOf(buttons[why], next, place) : nothing}`;
}

const maxLength = 160;

/** The first clause of a long text, and the others as sentences; a short text as it is. */
function clausesOf(text: string): [string, string] {
  const end = text.length > maxLength ? text.search(/[;.] /) : -1;
  if (end === -1) return [text.replace(/\.$/, ''), ''];
  return [text.slice(0, end), sentence(text.slice(end + 2))];
}

function endOf(button: string | undefined, next: string, place: Content): Content {
  if (button === undefined) return next.startsWith('expunge ') ? html`In a terminal: <code>${next}</code>` : `${next}.`;
  if (!mayOperate()) return 'An operator can end that.';
  return ofTarget.includes(button)
    ? html`<b>${button}</b> of its <a href="/#targets">target</a> ends that.`
    : html`<b>${button}</b>${place} ends that.`;
}
