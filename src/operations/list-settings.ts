import { ruleSettings } from '../ledger/run-rules.ts';

/** Settings for how a list is read, and which of its ids are deleted. */
export const input = [
  'resource',
  'resourceColumn',
  'format',
  'column',
  'noHeader',
  'delimiter',
  'limit',
  'protect',
  'protectColumn',
  'expectUnprotected',
  'allowIdChars',
  'idPattern',
  'allowPlaceholders',
  'allowInvisible',
  'allowColumnNames',
  'allowDamagedNumbers',
  'expectRejected',
  'allowEmpty',
  'maxDeletes',
  'expectCount',
] as const;

/** Settings for what may halt a run, how fast it is, and what its answers mean. */
export const ofRuns = ruleSettings.filter(
  (name): name is Exclude<typeof name, 'maxDeletes' | 'keep'> => name !== 'maxDeletes' && name !== 'keep',
);
