import { count, isoTime, plural, utcTime } from '../format.ts';
import { describeSuccess, readDefinitions } from '../model/resource.ts';
import type { Verification } from '../model/verification.ts';
import type { RedisClient } from '../redis/client.ts';
import { type Run, setFields } from './run.ts';
import { readAbsentAnswers } from './semantics.ts';

/** Stores the result in place of an earlier verification's. Writes nothing if the run is gone. Repeating it changes nothing. */
export async function storeVerification(redis: RedisClient, run: string, found: Verification): Promise<void> {
  await setFields(redis, run, { verified: JSON.stringify(found) });
}

/** Describes a verification for people: `of 5,000 deleted ids, 200 were sent again on … by ana: 198 were gone, 2 were not …`. Pure. */
export function describeVerification({ at, who, of, gone, there, unclear }: Verification): string {
  const sent = gone + there + unclear;
  const parts = [
    `${count(gone)} ${gone === 1 ? 'was' : 'were'} gone`,
    ...(there > 0
      ? [
          `${count(there)} ${there === 1 ? 'was' : 'were'} answered with a success again, so the first one deleted nothing`,
        ]
      : []),
    ...(unclear > 0 ? [`${count(unclear)} gave no clear answer`] : []),
  ];
  return `of ${plural(of, 'deleted ids')}, ${count(sent)} ${sent === 1 ? 'was' : 'were'} sent again on ${utcTime(at, 'minute')} by ${who}: ${parts.join(', ')}`;
}

/** For `--json`. */
export function verificationFacts(found: Verification | null) {
  if (found === null) return null;
  const { at, ...others } = found;
  return { at: isoTime(at), ...others };
}

/** Reads how far a `deleted` of this run can be trusted, as sentences for every display of the run. */
export async function readProof(
  redis: RedisClient,
  { fp, verified, definitions, onStatus }: Pick<Run, 'fp' | 'verified' | 'definitions' | 'onStatus'>,
): Promise<string[]> {
  const known = await readAbsentAnswers(redis, fp);
  return [
    ...describeSuccess(readDefinitions(definitions), onStatus),
    ...known,
    ...(verified === null ? [] : [describeVerification(verified)]),
  ];
}
