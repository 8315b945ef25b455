import { isWithin, parseStatusRanges, type StatusRange, statusRanges } from '../model/status.ts';
import type { HaltCode } from './run.ts';

/** The number of equal refusals in a row, over all processes, from which a run sends one id at a time. */
export const refusalsInARow = 20;

/** The number of ids that are sent one at a time then; if all of them are refused, the run halts. */
export const probes = 4;

/** What it means that an API refuses ids in a row with one status. */
export type Refusal = {
  halt: HaltCode;
  statuses: readonly StatusRange[];
  /** What the API did with the ids. */
  said: string;
  /** What may be wrong, after `Perhaps`. */
  advice: string;
};

/** The first row that matches decides. An id with the outcome `absent` counts for the first row, whatever its status. */
export const refusals: readonly Refusal[] = [
  {
    halt: 'all_absent',
    statuses: statusRanges('gone'),
    said: 'were not there',
    advice: 'the API was being deployed, or --base-url, --resource or the account of the token is wrong',
  },
  {
    halt: 'forbidden',
    statuses: statusRanges('forbidden'),
    said: 'were forbidden',
    advice:
      'the token lacks the right to delete them, or belongs to another account; ' +
      'if the API answers so above its rate, --on-status 403=wait waits',
  },
  {
    halt: 'wrong_endpoint',
    statuses: [...parseStatusRanges('405, 415'), ...statusRanges('unsupported')],
    said: 'were refused as if nothing can be deleted there',
    advice: '--base-url or --resource is wrong',
  },
  {
    halt: 'refused',
    statuses: [[400, 499]],
    said: 'were refused',
    advice: 'the list holds ids of another kind',
  },
];

const absence = refusals[0]!;

/** The row of a refusal. `isGone`: it says that the id is not there. */
export function refusalOf(status: number, isGone: boolean): Refusal {
  if (isGone) return absence;
  return refusals.find(({ statuses }) => isWithin(statuses, status)) ?? refusals.at(-1)!;
}

/** How to say that refusals with a status are expected: `--expect-absent`, `--expect 403`. */
export function expectFlag(status: number, isGone: boolean): string {
  return isGone ? '--expect-absent' : `--expect ${status}`;
}

/** Answers that may come from something other than the API; an id that ends `unknown` or `failed` with one counts. */
export const unexpected = {
  halt: 'unexpected_answers',
  statuses: statusRanges('unexpected'),
  count: 3,
  reason:
    '{count} answers did not say whether the object is deleted (another 2xx, a page, a redirect, a 406, or a success of another form than before): ' +
    'something other than the API may be answering, for example a login page; check --base-url',
} as const;
