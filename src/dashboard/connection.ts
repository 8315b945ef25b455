import { moment } from './format.ts';
import type { Connection } from './live.ts';
import { html, nothing } from './markup.ts';
import { type Content, time } from './parts.ts';

const words = {
  connecting: 'Connecting …',
  live: 'Live',
  hidden: 'Paused while the page is hidden.',
  none: '',
} as const;

/** The state of the connection, since when, and the time that the page shows. */
export class ConnectionState {
  #connection: Connection = 'none';
  /** When the page was last live; '' = never. */
  #liveAt = '';
  #since = '';
  #say;

  constructor(say: (words: string) => void) {
    this.#say = say;
  }

  /** Starts again for another page, which is not connected yet and shows nothing. */
  reset() {
    [this.#connection, this.#liveAt] = ['none', ''];
  }

  set(next: Connection) {
    const before = this.#connection;
    const now = new Date().toISOString();
    if (next === 'live') this.#liveAt = now;
    if (typeof next === 'object' && (typeof before !== 'object' || before.title !== next.title)) {
      this.#since = now;
      this.#say(`${next.title}. This page tries again by itself.`);
    }
    if (next === 'live' && typeof before === 'object') this.#say('Connected again.');
    this.#connection = next;
  }

  /** Whether the page may show an old state. */
  get isOld() {
    return this.#liveAt !== '' && this.#connection !== 'live' && this.#connection !== 'none';
  }

  asOf() {
    return this.isOld ? `As of ${moment(this.#liveAt)}: ` : '';
  }

  badge(): Content {
    const state = this.#connection;
    if (state === 'none') return nothing;
    const kind = typeof state === 'object' ? 'lost' : state;
    const known = this.#liveAt ? html`As of ${time(this.#liveAt)}` : 'Not connected';
    return html`<p class="connection ${kind}"><span>${typeof state === 'object' ? known : words[state]}</span></p>`;
  }

  /** The problem, since when, and what to do; nothing without a problem. */
  banner(): Content {
    if (typeof this.#connection !== 'object') return nothing;
    const { title, detail, advice } = this.#connection;
    const shown = this.#liveAt ? html`What you see is as of ${time(this.#liveAt)}. ` : nothing;
    return html`<aside class="trouble" aria-label="Connection"><p><b>${title}</b> since ${time(this.#since)}. ${detail}</p>
      <p>${shown}${advice} This page tries again by itself.</p></aside>`;
  }
}
