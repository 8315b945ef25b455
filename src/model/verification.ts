/** What sending a sample of the `deleted` ids of a run once more found. `gone` + `there` + `unclear` = the ids that were sent. */
export type Verification = {
  at: number; // ms since 1970
  who: string;
  sample: number; // ids that were chosen; fewer were sent if it was stopped
  of: number; // deleted ids of the run
  gone: number; // answered 404 or 410
  there: number; // answered 204
  unclear: number; // answered otherwise, or not at all
};

/** A verification as the run holds it; null for none, and for one that another release wrote in another form. */
export function verificationFromStored(text: string): Verification | null {
  try {
    const found = JSON.parse(text) as Verification;
    return typeof found.gone === 'number' && typeof found.at === 'number' ? found : null;
  } catch {
    return null;
  }
}
