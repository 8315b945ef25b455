import { settingsFor } from '../config/settings.ts';

/** Settings for how a list is read, and which of its ids are deleted. */
export const input = [...settingsFor('list'), 'maxDeletes'] as const;

/** Settings for what may halt a run, how fast it is, and what its answers mean. */
export const ofRuns = settingsFor('rule').filter(
  (name): name is Exclude<typeof name, 'maxDeletes' | 'keep'> => name !== 'maxDeletes' && name !== 'keep',
);
