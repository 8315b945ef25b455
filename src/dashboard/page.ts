import type { Connection } from './live.ts';
import type { TemplateResult } from './markup.ts';

/** A page: what it shows now, and what ends it. */
export type Page = {
  view: () => TemplateResult;
  /** What stands in the tab of the browser. */
  title: () => string;
  /** What follows when it was drawn. */
  drawn?: () => void;
  close: () => void;
};

/** What a page gets. */
export type Surroundings = {
  /** Draws it anew. */
  show: () => void;
  /** Leads to another page. */
  go: (path: string) => void;
  /** Gives this page another address. */
  rename: (path: string) => void;
  /** Says how it is connected. */
  connection: (state: Connection) => void;
  /** `As of 15:00:41: ` while what is known may not be so any more, otherwise ''. */
  asOf: () => string;
  /** Tells those who do not see the page. */
  say: (words: string) => void;
  query: URLSearchParams;
};
