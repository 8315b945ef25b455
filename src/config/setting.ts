/** One setting: its name, how its text is read, and its meaning. */
type Setting<T> = {
  flag: string;
  isFlagless?: true; // no command takes the flag: only a variable or the configuration file can set it
  env: string | null;
  arg: string | null; // the placeholder in the help text; null for a switch
  ifRepeated?: 'joined' | 'refused'; // two flags are joined with a comma, or refused; without it the last flag wins
  parse: (text: string) => T;
  fallback: T | undefined;
  help: string;
};

/** A row of the table of settings, with its own type of value. `fallback: undefined` leaves the setting unset. */
export function setting<T, F extends T | undefined>(row: Omit<Setting<T>, 'fallback'> & { fallback: F }) {
  return row as Setting<T> & { fallback: F };
}
