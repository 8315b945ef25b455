import { type Config, durationText, type SettingFor, type SettingName } from '../config/settings.ts';
import { isoTime } from '../format.ts';
import { labelsFrom } from '../model/labels.ts';
import { type Rate, rateSetting, readableRate, storedRate } from '../model/rate.ts';
import { always } from '../model/time-window.ts';

/** The word for no rule, on the command line and in the audit trail. */
const none = 'none';

/** The settings of a command, which can set rules. Without `sources` every setting counts as given. */
export type GivenSettings = {
  config: Partial<Config>;
  sources?: Partial<Record<SettingName, string>>;
  options?: Record<string, unknown>;
};

type RuleSetting = SettingFor<'rule'>;

/** One rule that a run obeys. Its key in the table is its field in the record. */
type Rule<T, S extends RuleSetting | null, O extends boolean = boolean> = {
  flag: string; // the flag, which is also the action of a change in the audit trail
  setting: S; // null: an option of the commands that make runs
  label: string; // its name on the page of a run
  fact: string; // its name in the API
  unset: T; // the value of a run without this rule
  /** The value that a command gives; undefined = none. */
  given(said: GivenSettings): T | undefined;
  /** The value in the form of the record; '' = unset. */
  stored(value: T): string | number;
  /** Reads a value that `stored` wrote. */
  read(text: string): T;
  /** The value for people, in the form of its flag. Not called for an unset value. */
  text(value: T): string;
  /** Whether the second value allows more than the first, or might: a value that cannot be compared counts as looser. */
  isLooser(from: T, to: T): boolean;
  /** The API's value of a rule that is set, if that is not its text. */
  shown?(value: T): unknown;
  /** Whether the field is missing when the rule is unset: scripts test for the presence of the field. */
  isAbsentWhenUnset?: true;
  /** Further fields of the record that a change sets. */
  with?: Readonly<Record<string, string | number>>;

  /**
   * How a later command for an unfinished run can affect the rule: `change` it, or `add` it if it is unset. With `refuse`, another value is refused.
   */
  resume: 'change' | 'add' | 'refuse';
  /** Whether the command `resume` and its route can change it. */
  onResume: O;
  /** Whether a retry begins with the rule of the run that it retries. */
  retry: 'inherit' | 'drop';
  /** In a run of a plan. `sealed`: only the approver can loosen it. `free`: not a brake, so anyone can change it. */
  plan: 'sealed' | 'free';
  /** The part of the run's page that shows it. */
  page: 'guards' | 'plan';
};

/** A row with its own type of value. */
function rule<T, const S extends RuleSetting | null, const O extends boolean>(row: Rule<T, S, O>): Rule<T, S, O> {
  return row;
}

/** The rows. Does not compile if a setting with the use `rule` has none. */
function completeRules<const R extends Record<string, { setting: RuleSetting | null }>>(
  rows: [Exclude<RuleSetting, R[keyof R]['setting']>] extends [never]
    ? R
    : `no row has the setting ${Exclude<RuleSetting, R[keyof R]['setting']>}`,
) {
  return rows as R;
}

/** Higher is looser; the unset value is the loosest. */
function isHigher<T>(unset: T) {
  return (from: T, to: T) => from !== unset && (to === unset || Number(to) > Number(from));
}

/** Lower is looser. */
function isLower(from: number, to: number): boolean {
  return to < from;
}

/** Every rule that a run obeys, in the order of the page of a run. */
const runRules = completeRules({
  rate: rule({
    flag: 'rate',
    setting: 'rate',
    label: 'rate',
    fact: 'rate',
    unset: null as Rate | null,
    given: ({ config }) => config.rate,
    stored: (rate) => (rate === null ? '' : storedRate(rate)),
    read: readableRate,
    text: (rate) => (rate === null ? none : rateSetting(rate)),
    isLooser: () => false,
    resume: 'change',
    onResume: false,
    retry: 'inherit',
    plan: 'free',
    page: 'plan',
  }),
  onStatus: rule({
    flag: 'on-status',
    setting: 'onStatus',
    label: 'on status',
    fact: 'on_status',
    unset: '',
    given: ({ config }) => config.onStatus || undefined,
    stored: (onStatus) => onStatus,
    read: (text) => text,
    text: (onStatus) => onStatus,
    isLooser: (from, to) => from !== to,
    resume: 'refuse', // so that an outcome means the same from the first id of a run to the last
    onResume: true,
    retry: 'inherit',
    plan: 'sealed',
    page: 'plan',
  }),
  labels: rule({
    flag: 'label',
    setting: 'label',
    label: 'labels',
    fact: 'labels',
    unset: '',
    given: ({ config }) => config.label || undefined,
    stored: (labels) => labels,
    read: (text) => text,
    text: (labels) => labels.replaceAll(',', ', '),
    shown: labelsFrom,
    isLooser: () => false,
    isAbsentWhenUnset: true,
    resume: 'change',
    onResume: false,
    retry: 'inherit',
    plan: 'free',
    page: 'plan',
  }),
  keepMs: rule({
    flag: 'keep',
    setting: 'keep',
    label: 'kept for',
    fact: 'keep',
    unset: 0,
    given: ({ config, sources }) => (sources?.keep === 'default' ? undefined : config.keep),
    stored: (ms) => ms,
    read: Number,
    text: durationText,
    isLooser: isLower, // the evidence of how the run went is gone earlier
    resume: 'change',
    onResume: false,
    retry: 'drop',
    plan: 'sealed',
    page: 'plan',
  }),
  canaryOf: rule({
    flag: 'canary',
    setting: 'canary',
    label: 'canary',
    fact: 'canary',
    unset: '',
    given: ({ config }) => config.canary?.join(),
    stored: (rungs) => rungs,
    read: (text) => text,
    text: (rungs) => rungs,
    isLooser: (from, to) => from !== to,
    resume: 'refuse', // the chunks of a run end at its rungs
    onResume: false,
    retry: 'drop',
    plan: 'sealed',
    page: 'guards',
  }),
  maxDeletes: rule({
    flag: 'max-deletes',
    setting: 'maxDeletes',
    label: 'ids sent at most',
    fact: 'max_deletes',
    unset: null as number | null,
    given: ({ config }) => config.maxDeletes,
    stored: (most) => most ?? '',
    read: (text) => (text === '' ? null : Number(text)),
    text: String,
    shown: (most) => most,
    isLooser: isHigher<number | null>(null),
    resume: 'change',
    onResume: true,
    retry: 'drop',
    plan: 'sealed',
    page: 'guards',
  }),
  maxFailures: rule({
    flag: 'max-failures',
    setting: 'maxFailures',
    label: 'failures at most',
    fact: 'max_failures',
    unset: '',
    given: ({ config: { maxFailures = '' } }) => (maxFailures === none ? '' : maxFailures || undefined),
    stored: (most) => most,
    read: (text) => text,
    text: (most) => most,
    isLooser: (from, to) => {
      const isShare = [from, to].map((most) => most.endsWith('%'));
      const [least, most] = [from, to].map((text) => Number.parseFloat(text));
      return from !== '' && from !== to && (to === '' || isShare[0] !== isShare[1] || most! > least!);
    },
    resume: 'change',
    onResume: false,
    retry: 'inherit',
    plan: 'sealed',
    page: 'guards',
  }),
  expectAbsent: rule({
    flag: 'expect-absent',
    setting: 'expectAbsent',
    label: 'absent ids expected',
    fact: 'expect_absent',
    unset: false,
    given: ({ config }) => config.expectAbsent || undefined,
    stored: (isExpected) => (isExpected ? 1 : 0),
    read: (text) => text === '1',
    text: String,
    shown: (isExpected) => isExpected,
    isLooser: (from, to) => to && !from,
    resume: 'add',
    onResume: true,
    retry: 'inherit',
    plan: 'sealed',
    page: 'guards',
  }),
  expect: rule({
    flag: 'expect',
    setting: 'expect',
    label: 'refusals expected',
    fact: 'expect',
    unset: '',
    given: ({ config }) => config.expect || undefined,
    stored: (statuses) => statuses,
    read: (text) => text,
    text: (statuses) => statuses,
    isLooser: (from, to) => to.split(',').some((status) => status !== '' && !from.split(',').includes(status)),
    resume: 'change',
    onResume: true,
    retry: 'inherit',
    plan: 'sealed',
    page: 'guards',
  }),
  window: rule({
    flag: 'window',
    setting: 'window',
    label: 'sends only',
    fact: 'window',
    unset: '',
    given: ({ config: { window = '' } }) => (window === always ? '' : window || undefined),
    stored: (window) => window,
    read: (text) => text,
    text: (window) => window,
    isLooser: (from, to) => from !== '' && from !== to,
    with: { closedUntil: 0 },
    resume: 'change',
    onResume: false,
    retry: 'inherit',
    plan: 'sealed',
    page: 'guards',
  }),
  graceMs: rule({
    flag: 'grace',
    setting: 'grace',
    label: 'grace period',
    fact: 'grace',
    unset: 0,
    given: ({ config, sources }) => ((sources?.grace ?? 'flag') === 'flag' ? config.grace : undefined), // configured: for new runs
    stored: (ms) => ms,
    read: Number,
    text: durationText,
    isLooser: isLower, // the run can start earlier
    isAbsentWhenUnset: true,
    resume: 'change',
    onResume: false,
    retry: 'inherit',
    plan: 'sealed',
    page: 'guards',
  }),
  startAt: rule({
    flag: 'start-at',
    setting: null,
    label: 'not before',
    fact: 'start_at',
    unset: 0,
    given: ({ options }) => options?.startAt as number | undefined,
    stored: (at) => at,
    read: Number,
    text: isoTime,
    isLooser: isLower, // the run can start earlier
    isAbsentWhenUnset: true,
    resume: 'change',
    onResume: false,
    retry: 'drop',
    plan: 'sealed',
    page: 'guards',
  }),
  stopAt: rule({
    flag: 'stop-at',
    setting: null,
    label: 'paused at',
    fact: 'stop_at',
    unset: 0,
    given: ({ options }) => options?.stopAt as number | undefined,
    stored: (at) => at,
    read: Number,
    text: isoTime,
    isLooser: isHigher(0),
    isAbsentWhenUnset: true,
    resume: 'change',
    onResume: false,
    retry: 'drop',
    plan: 'sealed',
    page: 'guards',
  }),
  maxActiveMs: rule({
    flag: 'max-duration',
    setting: null,
    label: 'paused after',
    fact: 'max_active_seconds',
    unset: 0,
    given: ({ options }) => options?.maxDuration as number | undefined,
    stored: (ms) => ms,
    read: Number,
    text: durationText,
    shown: (ms) => ms / 1_000,
    isLooser: isHigher(0),
    isAbsentWhenUnset: true,
    resume: 'change',
    onResume: false,
    retry: 'drop',
    plan: 'sealed',
    page: 'guards',
  }),
});

export type RuleName = keyof typeof runRules;

/** The rules of a run. */
export type RunRules = {
  [N in RuleName]: (typeof runRules)[N] extends Rule<infer T, RuleSetting | null> ? T : never;
};

type ResumeRow = Extract<(typeof runRules)[RuleName], { onResume: true }>;

/** The settings that `resume` can give; with its default, the rule stays as it is. */
export type ResumeSettings = Pick<Config, Exclude<ResumeRow['setting'], null>>;

/** The settings that become rules of a run. */
export type RunSettings = Pick<Config, RuleSetting>;

export const ruleNames = Object.keys(runRules) as RuleName[];

/** The row of a rule, for code that handles all rules alike. */
export function findRule(name: RuleName): Rule<unknown, RuleSetting | null> {
  return runRules[name];
}

function rulesFrom<T>(read: (name: RuleName, row: Rule<unknown, RuleSetting | null>) => T): Record<RuleName, T> {
  return Object.fromEntries(ruleNames.map((name) => [name, read(name, findRule(name))])) as Record<RuleName, T>;
}

/** The rules of a run that has none. */
export const noRules = rulesFrom((_, { unset }) => unset) as RunRules;

/** Parses the rules of a run in a Redis hash; missing fields are unset. Pure. */
export function parseRules(hash: Record<string, string>): RunRules {
  return rulesFrom((name, { read, unset }) => (hash[name] === undefined ? unset : read(hash[name]))) as RunRules;
}

/** The rules that a command gives, without the others. Pure. */
export function givenRules(said: GivenSettings): Partial<RunRules> {
  const given = ruleNames.map((name) => [name, findRule(name).given(said)] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

/** The fields that are missing from a record if their rule is unset. */
export const optionalFields = ruleNames.filter((name) => findRule(name).isAbsentWhenUnset === true);

/** The fields of the record. Pure. */
export function storedRules(rules: RunRules): Record<string, string | number> {
  const present = ruleNames.filter((name) => !optionalFields.includes(name) || isSet(rules, name));
  return Object.fromEntries(present.map((name) => [name, findRule(name).stored(rules[name])]));
}

/** Whether two runs have the same rule. Pure. */
export function isSameRule(name: RuleName, a: RunRules, b: RunRules): boolean {
  const { stored } = findRule(name);
  return stored(a[name]) === stored(b[name]);
}

/** Whether a run has this rule at all. Pure. */
export function isSet(rules: RunRules, name: RuleName): boolean {
  const { stored, unset } = findRule(name);
  return stored(rules[name]) !== stored(unset);
}

/** A rule for people, in the form of its flag; `none` if it is unset. Pure. */
export function ruleText(rules: RunRules, name: RuleName): string {
  return isSet(rules, name) ? findRule(name).text(rules[name]) : none;
}

/** The rules of a run in the API; null = unset, false for a switch. Pure. */
export function ruleFacts(rules: RunRules): Record<string, unknown> {
  const facts = ruleNames.map((name) => {
    const { fact, text, shown = text, unset } = findRule(name);
    return [fact, isSet(rules, name) ? shown(rules[name]) : unset === false ? false : null] as const;
  });
  return Object.fromEntries(facts);
}

/** The lines about a run's rules in one part of its page; '' for a rule that is unset. Pure. */
export function ruleLines(rules: RunRules, page: 'guards' | 'plan'): [label: string, text: string][] {
  const names = ruleNames.filter((name) => findRule(name).page === page);
  return names.map((name) => [findRule(name).label, isSet(rules, name) ? ruleText(rules, name) : '']);
}

/** The rules that a retry takes over from its run, as settings of its command. The settings of the command itself take precedence. Pure. */
export function inheritedSettings(run: RunRules, said: GivenSettings): Partial<Config> {
  const names = ruleNames.filter((name) => {
    const { retry, given, setting } = findRule(name);
    return retry === 'inherit' && setting !== null && given(said) === undefined && isSet(run, name);
  });
  return Object.fromEntries(names.map((name) => [findRule(name).setting, run[name]]));
}
