import { html, nothing } from '/assets/lit-html/lit-html.js';
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

/** Why a run that has not ended does not move; nothing while it does. */
export function standstillOf(run: RunSummary): Content {
  if (run.standing) return standingOf(run, run.standing);
  const isStill = run.per_second === 0 && !isSealed(run);
  return isStill ? html`No id has had an outcome in the last seconds: <a href="/runs/${run.run}">why</a>` : nothing;
}

/** What holds it back, since or until when, and what ends it. */
function standingOf(run: RunSummary, { why, text, since, until, next }: Standing): Content {
  const when = until ? html` until ${time(until)}` : since ? html`, since ${time(since)}` : nothing;
  const words = `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
  return html`<b class="bad">${words}</b>${when}. ${next ? endOf(run, buttons[why], next) : nothing}`;
}

function endOf({ run }: RunSummary, button: string | undefined, next: string): Content {
  if (button === undefined) return next.startsWith('expunge ') ? html`In a terminal: <code>${next}</code>` : `${next}.`;
  if (!mayOperate()) return 'An operator can end that.';
  return ofTarget.includes(button)
    ? html`<b>${button}</b> of its <a href="/#targets">target</a> ends that.`
    : html`<b>${button}</b> on <a href="/runs/${run}">its page</a> ends that.`;
}
