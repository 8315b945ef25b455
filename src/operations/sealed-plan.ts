import { createHash } from 'node:crypto';
import canonicalJson from 'canonicalize';
import type { Sources } from '../config/read-config.ts';
import { type Config, type SettingName, settings, settingText } from '../config/settings.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import { countSettledRows } from '../input/chunk-ids.ts';
import type { InputFile } from '../input/open-inputs.ts';
import type { Spool } from '../input/spool.ts';
import type { List } from '../input/with-list.ts';
import { noRules } from '../ledger/run-rules.ts';
import { forecast } from '../model/forecast.ts';
import type { ReadOutcome } from '../model/outcome.ts';
import { type Definitions, definitionsOf, type Resource, usedResources } from '../model/resource.ts';
import type { Target } from '../model/target.ts';
import { countRequests, toWork } from './forecast-list.ts';
import { input, ofRuns } from './list-settings.ts';
import { noBounds } from './read-bounds.ts';

/** The settings that a plan seals: which ids a list holds, and how they are deleted. */
export const sealedSettings = [...input, ...ofRuns] as const satisfies readonly SettingName[];

export type SealedSetting = (typeof sealedSettings)[number];

/** One file of the list, byte for byte. */
export type SealedInput = { name: string; bytes: number; sha256: string };

/** A plan as its file holds it, in canonical JSON. Its code is not in it. */
export type SealedPlan = {
  v: 2;
  type: 'plan';
  planned_at: string;
  planned_by: string;
  approve_by: string | null; // who has to apply it: a name, or a role like role:admin; null: anyone
  reason: string;
  target: { base_url: string; account: string };
  input: SealedInput[];
  ids: SealedIds;
  protect: { ids: number; sha256: string } | null;
  resources?: Definitions; // of the configured resources among the ids; missing if all are built in
  rules: Record<SealedSetting, string | null>; // as their flags take them; null = unset
  forecast: { requests: number; seconds: number | null }; // minimum time; without a rate it is not known
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
export function sealPlan(
  origin: PlanOrigin,
  config: Config,
  target: Target,
  input: SealedInput[],
  list: List,
): SealedPlan {
  const { spool } = list;
  const requests = countRequests(list, config);
  return {
    v: 2,
    type: 'plan',
    ...origin,
    target: { base_url: target.baseUrl, account: target.account },
    input,
    ids: sealedIds(spool),
    protect: spool.protectedList && { ids: spool.protectedList.ids, sha256: spool.protectedList.sha256 },
    ...sealedDefinitions(spool),
    rules: sealedRules(config),
    forecast: { requests, seconds: minSeconds(requests, config.rate) },
  };
}

/** The minimum time at the rate of the plan alone: a plan does not depend on the state of the target when it is made. */
function minSeconds(requests: number, rate: Config['rate']): number | null {
  if (rate === undefined) return null;
  const rules = { ...noRules, rate };
  return Math.ceil(forecast(toWork({ requests, rules }, noBounds), Date.now()).secondsFrom);
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

/** Whether a plan is for a part of its list, the first ids up to `--max-deletes`, as --partial asked. Pure. */
export function isPartial({ ids, forecast }: SealedPlan): boolean {
  return forecast.requests < ids.rows - ids.duplicate - ids.protected - ids.rejected;
}

/**
 * The settings of a command with those of a plan in their place, except its `own`; the longer grace period counts. Throws USAGE for a value that no
 * plan of this version holds.
 */
export function withRules(config: Config, { rules }: SealedPlan, own: readonly SealedSetting[] = []): Config {
  const values = withoutOwn(own).map((name) => [name, ruleOf(name, rules[name])]);
  const sealed: Config = { ...config, ...Object.fromEntries(values) };
  return Object.freeze({ ...sealed, grace: Math.max(config.grace, sealed.grace) });
}

function withoutOwn(own: readonly SealedSetting[]): readonly SealedSetting[] {
  return sealedSettings.filter((name) => !own.includes(name));
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
export function otherRules(
  { rules }: SealedPlan,
  config: Config,
  sources: Sources,
  own: readonly SealedSetting[] = [],
): string[] {
  return withoutOwn(own).flatMap((name) => {
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

/** The hash of each file, read once from start to end. Throws what reading throws. */
export async function sealInputs(files: readonly InputFile[]): Promise<SealedInput[]> {
  const sealed: SealedInput[] = [];
  for (const file of files) {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const block of file.open()) {
      hash.update(block);
      bytes += block.length;
    }
    sealed.push({ name: file.name, bytes, sha256: hash.digest('hex') });
  }
  return sealed;
}

/** The text of a plan's file. */
export function planFileText(plan: SealedPlan): string {
  return `${canonicalJson(plan)}\n`;
}

/** The hash from which the code of a plan is made, and which the audit trail names: the SHA-256 of its file. */
export function planHash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

const codeLetters = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'; // 32 letters and digits, without those that look alike

/** The short code of a plan, made from the first 40 bits of its hash: `K7QD-M4TZ`. */
export function planCode(sha256: string): string {
  const bits = BigInt(`0x${sha256.slice(0, 10)}`);
  const letters = Array.from({ length: 8 }, (_, i) => codeLetters[Number((bits >> BigInt(35 - 5 * i)) & 31n)]);
  return `${letters.slice(0, 4).join('')}-${letters.slice(4).join('')}`;
}

/** Whether a text is the code of the plan, in upper or lower case, with or without the hyphen, or its whole hash. */
export function isPlanCode(sha256: string, text: string): boolean {
  const typed = text.replace(/\s/g, '').toUpperCase();
  return typed === sha256.toUpperCase() || typed.replace('-', '') === planCode(sha256).replace('-', '');
}
