/**
 * The use of a setting, which decides who stores it.
 * `target`: it names the target, or the credentials' owner there. A run and a schedule belong to that target.
 * `list`: how a list is read, and which of its ids are deleted. Plans seal it, schedules keep it, and runs of a list take it as a flag.
 * `rule`: a rule of a run, with a row in `ledger/run-rules.ts`, which says whether a resume can change it, a retry inherits it, a plan seals it, and
 * where it is shown. Schedules keep it.
 * `process`: it belongs to the process that makes or deletes a run, and nothing stores it.
 */
export type SettingUse = 'target' | 'list' | 'rule' | 'process';

/** One setting: its name, how its text is read, and its meaning. */
type Setting<T> = {
  use: SettingUse;
  flag: string;
  isFlagless?: true; // no command takes the flag, because nobody types it per command: only a variable or the configuration file can set it
  env: string | null;
  arg: string | null; // the placeholder in the help text; null for a switch
  ifRepeated?: 'joined' | 'refused'; // two flags are joined with a comma, or refused; without it the last flag wins
  parse: (text: string) => T;
  fallback: T | undefined;
  help: string;
};

/** A row of the table of settings, with its own type of value. `fallback: undefined` leaves the setting unset. */
export function setting<T, F extends T | undefined, const U extends SettingUse>(
  row: Omit<Setting<T>, 'fallback' | 'use'> & { fallback: F; use: U },
) {
  return row as Setting<T> & { fallback: F; use: U };
}
