/** The result of sending a sample of a run's `deleted` ids again. `gone` + `there` + `unclear` = the ids that were sent. */
export type Verification = {
  at: number; // ms since 1970
  who: string;
  sample: number; // chosen ids; fewer were sent if it was stopped
  of: number; // deleted ids of the run
  gone: number; // answered 404 or 410
  there: number; // answered with a success
  unclear: number; // answered otherwise, or not at all
};
