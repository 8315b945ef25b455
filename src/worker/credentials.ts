import { messageOf } from '../errors.ts';
import type { HaltCode } from '../ledger/run.ts';
import type { Token } from '../token/token.ts';

export type Credentials = {
  /** False if the token was refused for good and still is: then the run has been halted. Asked before the work on each chunk. */
  areGood(run: string): Promise<boolean>;
};

type CredentialDeps = {
  /** There is another token. */
  changed(): void;
  /** The runs in hand. */
  runs(): string[];
  halt(run: string, code: HaltCode, reason: string): void;
};

/**
 * Halts the runs in hand once the token is refused for good. Whoever resumes one, or starts another, has a new try: the
 * credentials may have been mended.
 */
export function followToken(token: Token, { changed, runs, halt }: CredentialDeps): Credentials {
  let refusal = '';
  token.onChange(changed);
  token.onRefused((reason) => {
    refusal = reason;
    for (const run of runs()) halt(run, 'credentials', reason);
  });
  return {
    areGood: async (run) => {
      if (refusal === '') return true;
      try {
        await token.start();
        refusal = '';
        return true;
      } catch (error) {
        halt(run, 'credentials', messageOf(error));
        return false;
      }
    },
  };
}
