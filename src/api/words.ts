import { priorities } from '../ledger/run.ts';
import { idOutcomes, isSuccess, isWorthAnotherRun, outcomes, outcomeText } from '../model/outcome.ts';
import { resources } from '../model/resource.ts';

/** The words of runs, for pages that show them: they have no list of their own. */
export const words = {
  outcomes: outcomes.map((outcome) => ({
    ...{ outcome, means: outcomeText(outcome), is_success: isSuccess(outcome) },
    ...{ is_retryable: isWorthAnotherRun(outcome), of_id: idOutcomes.includes(outcome) },
  })),
  resources,
  priorities,
};
