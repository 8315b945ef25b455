import type { Connection } from './live.ts';
import type { TemplateResult } from './markup.ts';

/** A page: its current view, and how to end it. */
export type Page = {
  view: () => TemplateResult;
  /** The title in the tab of the browser. */
  title: () => string;
  /** Called after each drawing. */
  drawn?: () => void;
  close: () => void;
};

/** Functions for a page. */
export type Surroundings = {
  /** Redraws the page. */
  show: () => void;
  /** Opens another page. */
  go: (path: string) => void;
  /** Gives this page another address. */
  rename: (path: string) => void;
  /** Takes the state of its connection. */
  connection: (state: Connection) => void;
  /** `As of 15:00:41: ` while the shown state may be old, otherwise ''. */
  asOf: () => string;
  /** Announces a text to screen readers. */
  say: (words: string) => void;
  query: URLSearchParams;
};
