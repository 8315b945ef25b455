import { plural } from '../format.ts';
import type { RunState } from '../ledger/run.ts';
import { paceWords } from './pace.ts';
import type { Snapshot } from './snapshot.ts';
import { plainLine } from './style.ts';

/** What a run is doing at this moment and why, in words. */
export function rightNow(snapshot: Snapshot): string {
  return plainLine(words[snapshot.state](snapshot));
}

const words: Record<RunState, (snapshot: Snapshot) => string> = {
  preparing: () => 'Writing the list to Redis.',
  planned: () => 'Nothing was sent yet; waiting for its start.',
  running: (run) => (run.isAbandoned ? abandoned : paceWords(run)),
  paused: (run) => `Paused${because(run)}. Go on with${goOn(run)}`,
  halted: (run) => `Halted${because(run)}.`,
  cancelling: (run) => `Cancelling${because(run)}${finishing(run)}.`,
  cancelled: (run) => `Cancelled${because(run)}.`,
  completed: () => 'Completed.',
};

/** What is told of a run whose command was killed. */
export const abandoned = 'Its command has ended and nobody works on it.';

function because({ who, reason }: Snapshot): string {
  return `${who ? ` by ${who}` : ''}${reason ? `: ${reason.replace(/\.$/, '')}` : ''}`;
}

/** What an interrupted command left behind has nobody who works on it. */
function goOn({ by, runId }: Snapshot): string {
  return by === 'interrupt' ? ' the same command.' : `: expunge resume ${runId}`;
}

function finishing({ inFlight }: Snapshot): string {
  return inFlight ? `; finishing ${plural(inFlight, 'requests')}` : '';
}
