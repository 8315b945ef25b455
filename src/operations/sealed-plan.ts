import canonicalJson from 'canonicalize';
import type { Sources } from '../config/read-config.ts';
import { type Config, type SettingName, settings, settingText } from '../config/settings.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import { countSettledRows } from '../input/chunk-ids.ts';
import type { Spool } from '../input/spool.ts';
import type { List } from '../input/with-list.ts';
import type { ReadOutcome } from '../model/outcome.ts';
import { type Definitions, definitionsOf, type Resource, usedResources } from '../model/resource.ts';
import type { Target } from '../model/target.ts';
import { countRequests } from './forecast-list.ts';
import { input, ofRuns } from './list-settings.ts';

/**
 * The settings that a plan seals: which ids a list holds, and how they are deleted. The file of the protected ids may have another name where the plan
 * is applied: the ids themselves are compared.
 */
export const sealedSettings = [...input, ...ofRuns].filter(
  (name): name is Exclude<typeof name, 'protect' | 'protectColumn'> => name !== 'protect' && name !== 'protectColumn',
) satisfies readonly SettingName[];

type SealedSetting = (typeof sealedSettings)[number];

/** A plan as Redis keeps it. */
export type SealedPlan = {
  planned_at: string;
  planned_by: string;
  approve_by: string | null; // who has to apply it: a name, or a role like role:admin; null: anyone
  reason: string;
  target: { base_url: string; account: string };
  ids: SealedIds;
  protect: { ids: number; sha256: string } | null;
  resources?: Definitions; // of the configured resources among the ids; missing if all are built in
  rules: Record<SealedSetting, string | null>; // as their flags take them; null = unset
  requests: number; // how many it takes at least
};

type SealedIds = Record<ReadOutcome | 'rows', number> & {
  [resource: Resource]: number | string | null;
  sha256: string;
  first: string | null; // annotations/a-1
  last: string | null;
};

/** Who makes a plan, when, and why. */
export type PlanOrigin = Pick<SealedPlan, 'planned_at' | 'planned_by' | 'approve_by' | 'reason'>;

/** The plan of a list that was read. Pure. */
export function sealPlan(origin: PlanOrigin, config: Config, target: Target, list: List): SealedPlan {
  const { spool } = list;
  return {
    ...origin,
    target: { base_url: target.baseUrl, account: target.account },
    ids: sealedIds(spool),
    protect: spool.protectedList && { ids: spool.protectedList.ids, sha256: spool.protectedList.sha256 },
    ...sealedDefinitions(spool),
    rules: sealedRules(config),
    requests: countRequests(list, config),
  };
}

function sealedDefinitions({ ids }: Spool): Pick<SealedPlan, 'resources'> {
  const resources = definitionsOf(usedResources(ids));
  return Object.keys(resources).length === 0 ? {} : { resources };
}

function sealedIds(spool: Spool): SealedIds {
  const { rows, ids, sha256, first, last } = spool;
  const ends = { first: first && `${first.resource}/${first.id}`, last: last && `${last.resource}/${last.id}` };
  return { rows, ...ids, ...countSettledRows(spool), sha256, ...ends };
}

function sealedRules(config: Config): SealedPlan['rules'] {
  const rules = sealedSettings.map((name) => [name, textOf(name, config[name])] as const);
  return Object.fromEntries(rules) as SealedPlan['rules'];
}

function textOf<N extends SealedSetting>(name: N, value: Config[N]): string | null {
  return settingText(name, value);
}

/** The plan that Redis keeps as this text. Throws GUARD for one with the rules of another version. */
export function parsePlan(text: string): SealedPlan {
  const plan = JSON.parse(text) as SealedPlan;
  if (Object.keys(plan.rules).sort().join() === [...sealedSettings].sort().join()) return plan;
  throw new ExpungeError('GUARD', 'another version of expunge made this plan; nothing was sent', {
    next: (toType) => `make it again: ${toType('plan')}`,
  });
}

/** Whether a plan is for a part of its list, the first ids up to `--max-deletes`, as --partial asked. Pure. */
export function isPartial({ ids, requests }: SealedPlan): boolean {
  return requests < ids.rows - ids.duplicate - ids.protected - ids.rejected;
}

/**
 * The settings of a command with those of a plan in their place; the longer grace period counts. Throws USAGE for a value that no plan of this
 * version holds.
 */
export function withRules(config: Config, { rules }: SealedPlan): Config {
  const values = sealedSettings.map((name) => [name, ruleOf(name, rules[name])]);
  const sealed: Config = { ...config, ...Object.fromEntries(values) };
  return Object.freeze({ ...sealed, grace: Math.max(config.grace, sealed.grace) });
}

/** The text of a default, such as the text of an empty list, need not be a value that can be given. */
function ruleOf(name: SealedSetting, text: string | null): unknown {
  const { fallback, parse } = settings[name];
  if (text === null || text === textOf(name, fallback as never)) return fallback;
  try {
    return parse(text);
  } catch (error) {
    const message = `the plan has a --${settings[name].flag} that this version of expunge can't read: ${messageOf(error)}`;
    throw new ExpungeError('USAGE', message, {
      cause: error,
      next: (toType) => `make the plan again: ${toType('plan')}`,
    });
  }
}

/** The settings of a flag, a variable or the configuration file that differ from the plan: `--rate 500/s instead of 200/s`. Pure. */
export function otherRules({ rules }: SealedPlan, config: Config, sources: Sources): string[] {
  return sealedSettings.flatMap((name) => {
    const text = textOf(name, config[name]);
    if (sources[name] === 'default' || text === rules[name] || isLongerGrace(name, rules.grace, config)) return [];
    return [`--${settings[name].flag} ${text} instead of ${rules[name] || 'none'}`];
  });
}

/** Whether a command gives a longer grace period than the plan: whoever carries it out may leave more time to cancel the run. */
function isLongerGrace(name: SealedSetting, planned: string | null, { grace }: Config): boolean {
  return name === 'grace' && grace > (ruleOf('grace', planned) as number);
}

/** The rules that differ from their default, as texts. Pure. */
export function changedTexts({ rules }: SealedPlan): Partial<Record<SealedSetting, string>> {
  const changed = sealedSettings.filter((name) => rules[name] !== textOf(name, settings[name].fallback as never));
  return Object.fromEntries(changed.map((name) => [name, rules[name] ?? '']));
}

/** The same by their flags. Pure. */
export function changedRules(plan: SealedPlan): Record<string, string> {
  const changed = Object.entries(changedTexts(plan));
  return Object.fromEntries(changed.map(([name, text]) => [`--${settings[name as SealedSetting].flag}`, text]));
}

/** How another reading of the list differs from the plan, in words. Pure. */
export function otherIds(plan: SealedPlan, { spool }: List): string[] {
  const now = sealedIds(spool);
  const same = Object.keys(now) as (keyof SealedIds)[];
  const ids = same
    .filter((fact) => now[fact] !== plan.ids[fact])
    .map((fact) => `${fact} ${now[fact]} instead of ${plan.ids[fact]}`);
  const isProtected = canonicalJson(spool.protectedList) === canonicalJson(plan.protect);
  return isProtected ? ids : [...ids, 'other protected ids'];
}
