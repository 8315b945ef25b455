/** The mark on everything that a rehearsal shows and writes. */
export const rehearsalMark = 'REHEARSAL';

type Rehearsed = { rehearsalOf: string };

/** The mark of a rehearsal in JSON; nothing for a real run. */
export function rehearsalFacts({ rehearsalOf }: Rehearsed): { rehearsal?: true } {
  return rehearsalOf === '' ? {} : { rehearsal: true };
}

/** The mark in front of a text about a run, with this text after it; '' for a real run. */
export function rehearsalPrefix({ rehearsalOf }: Rehearsed, after = ' '): string {
  return rehearsalOf === '' ? '' : `${rehearsalMark}${after}`;
}

/** What a rehearsal is, in a sentence. */
export function rehearsalText(baseUrl: string): string {
  return `a sandbox on this machine answers, nothing is sent to ${new URL(baseUrl).host}, and nothing is deleted`;
}
