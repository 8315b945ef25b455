import { renderField } from './ask.ts';
import { html } from './markup.ts';
import type { PlanField } from './types.ts';
import { me } from './words.ts';

/** The part of the form that asks: about the list, how it is written, or more. */
type Part = 'list' | 'writing' | 'more';

type Asked = { part: Part; label: string; hint?: string; isNumber?: boolean; isSwitch?: boolean };

/** How the form of a new run asks for each setting that a plan takes; null: only commands and the API take it. */
const questions: Readonly<Record<PlanField, Asked | null>> = {
  resource: { part: 'list', label: 'Ids of' },
  resource_column: null,
  column: {
    part: 'list',
    label: 'Column',
    hint: 'or field that holds the ids; if empty: id, unless another one is named like the resource',
  },
  delimiter: {
    part: 'writing',
    label: 'Delimiter',
    hint: 'between the columns of a CSV: one character, or tab; if empty: a comma, or a tab for .tsv',
  },
  comments: { part: 'writing', label: 'Comments', hint: 'the mark of lines that are left out: #' },
  no_header: { part: 'writing', label: 'No header', hint: 'the first column of a CSV holds the ids', isSwitch: true },
  rate: { part: 'more', label: 'Rate', hint: 'at most this many requests: 200/s' },
  limit: { part: 'more', label: 'Limit', hint: 'only the first n rows, for a trial', isNumber: true },
  max_failures: { part: 'more', label: 'Failures at most', hint: 'more halt the run: 10 or 2.5%' },
  canary: { part: 'more', label: 'Canary', hint: 'halts after this many ids, until someone resumes it: 100' },
  grace: {
    part: 'more',
    label: 'Grace period',
    hint: 'nothing is sent for this long, so that it can be cancelled: 15min',
  },
  label: { part: 'more', label: 'Labels', hint: 'to find the run again: ticket=OPS-77' },
  expect_unprotected: null, // the plan asks for it
  expect_protected: null,
  allow_id_chars: null,
  id_pattern: null,
  allow_mixed_ids: null, // the plan asks for it
  allow_invisible: null,
  allow_column_names: null,
  allow_damaged_numbers: null,
  allow_placeholders: null,
  expect_rejected: null,
  allow_empty: null,
  allow_open_end: {
    part: 'writing',
    label: 'No newline at the end',
    hint: 'the last line is whole although it has none',
    isSwitch: true,
  },
  expect_count: null, // a person types the number
  max_deletes: null,
  on_status: null,
  expect_absent: null,
  expect: null,
  window: null,
};

/** The fields of one part of the form. */
export function planFields(part: Part) {
  return Object.entries(questions).map(([name, asked]) => (asked?.part === part ? fieldFor(name, asked) : ''));
}

function fieldFor(name: string, { label, hint = '', isNumber = false, isSwitch }: Asked) {
  if (isSwitch)
    return html`<label class="check"><input type="checkbox" name=${name} value="true"> <span>${label}<br><small>${hint}</small></span></label>`;
  if (name === 'resource') return renderField({ name, label, choices: me.resources });
  return renderField({ name, label, hint, isNumber, isOptional: true });
}
