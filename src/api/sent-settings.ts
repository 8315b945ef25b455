import type { Config, SettingName } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { input, ofRuns } from '../operations/list-settings.ts';
import { scheduledSettings } from '../schedule/schedule.ts';
import type { Field } from './setting-fields.ts';

// The settings that a command with --server sends must be the settings that the API takes. Both are listed here.

const ofFiles = ['protect', 'protectColumn'] as const;

type OfFile = (typeof ofFiles)[number];

function withoutFiles<N extends SettingName>(names: readonly N[]): Exclude<N, OfFile>[] {
  return names.filter((name): name is Exclude<N, OfFile> => !(ofFiles as readonly string[]).includes(name));
}

/** Settings about a list: how it is read and its ids are deleted. Its content type gives its format. */
export const listSettings = withoutFiles([...input, ...ofRuns]).filter((name) => name !== 'format');

/** The fields of a plan for those settings. */
export type PlanField = Field<(typeof listSettings)[number]>;

/** Settings that the request to delete a list can still change after its plan was made. */
export const ruleSettings = [...ofRuns, 'maxDeletes'] as const;

/** Settings of a schedule. */
export const scheduleSettings = withoutFiles(scheduledSettings);

/** Throws USAGE for a file of protected ids: it is on this machine, but `who` reads the list. */
export function refuseProtectFile(
  { config: { protect } }: { config: Pick<Config, 'protect'> },
  { who, next }: { who: string; next: string },
): void {
  if (protect === undefined) return;
  throw new ExpungeError('USAGE', `--protect ${protect}: ${who} not have this file`, { next });
}
