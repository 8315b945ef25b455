import { statusesText, statusRanges } from '../model/status.ts';
import type { HaltRule } from './halt-rules.ts';

/** The number of absent ids that halts a run while nothing is deleted. */
export const absentInARow = 50;

/**
 * The rules that halt a run, over all processes: answers that suggest that something is wrong with the run as a whole, not with one id. An answer
 * counts by its status, even if `--on-status` gives it another meaning. An id with the outcome `absent` counts as absent.
 */
export const haltRules: readonly HaltRule[] = [
  {
    halt: 'unexpected_answers',
    statuses: statusRanges('unexpected'),
    hasSuccesses: true,
    count: 3,
    reason:
      '{count} answers did not say whether the object is deleted (another 2xx, a page, a redirect or a 406): ' +
      'something other than the API may be answering, for example a login page; check --base-url',
  },
  {
    halt: 'wrong_endpoint',
    statuses: [[405, 405], [415, 415], ...statusRanges('unsupported')],
    count: 3,
    reason: '{count} answers said that nothing can be deleted there ({statuses}): check --base-url and --resource',
  },
  {
    halt: 'forbidden',
    statuses: statusRanges('forbidden'),
    allOfFirst: 20,
    percent: { over: 10, after: 1_000 },
    reason:
      '{count} of {total} ids were forbidden ({statuses}): the token may lack the right to delete them, or belong to another account; if the API answers so above its rate, --on-status 403=wait waits',
  },
  {
    halt: 'refused_input',
    statuses: [
      [400, 400],
      [412, 414],
      [417, 417],
      [422, 422],
      [428, 428],
      [431, 431],
    ],
    percent: { over: 20, after: 200 },
    reason:
      '{count} of {total} ids were refused as they are ({statuses}): check whether the list holds ids of this kind',
  },
  {
    halt: 'all_absent',
    statuses: statusRanges('gone'),
    isAbsence: true,
    inARow: absentInARow,
    allOfFirst: absentInARow,
    percent: { over: 50, after: 1_000 },
    reason:
      `{count} of {total} ids were not there (${statusesText('gone')}): check --base-url, --resource and the account of the token; ` +
      'if they are expected to be gone, resume with --expect-absent',
  },
];
