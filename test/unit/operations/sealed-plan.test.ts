import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/read-config.ts';
import { settings, settingText } from '../../../src/config/settings.ts';
import {
  otherRules,
  parsePlan,
  type SealedPlan,
  sealedSettings,
  withRules,
} from '../../../src/operations/sealed-plan.ts';

function load(flags: Record<string, string>) {
  return loadConfig({ flags, env: {}, configFile: null });
}

/** The rules of a plan that was made with these flags. */
function planOf(flags: Record<string, string>): SealedPlan {
  const { config } = load(flags);
  const rules = Object.fromEntries(sealedSettings.map((name) => [name, settingText(name, config[name])]));
  return { rules } as SealedPlan;
}

const told = {
  column: 'annotation_id',
  delimiter: 'tab',
  limit: '7',
  canary: '1,10',
  maxFailures: '2.5%',
  onStatus: '409=absent',
  rate: '200/s,100000/day',
  noHeader: 'true',
  expectCount: '250000±5%',
};

describe('the rules of a plan', () => {
  test('stand for those of a command, each as it was', () => {
    const { config } = load(told);
    const applied = withRules(load({}).config, planOf(told));
    for (const name of sealedSettings) expect(applied[name], name).toEqual(config[name]);
  });

  test('differ from no command that says nothing, or the same', () => {
    for (const flags of [{}, told]) {
      const { config, sources } = load(flags);
      expect(otherRules(planOf(told), config, sources)).toEqual([]);
    }
  });

  test.for(Object.keys(told))('differ from a command that says another --%s', (name) => {
    const others = { ...planOf(told), rules: { ...planOf(told).rules, [name]: 'other' } } as SealedPlan;
    const { config, sources } = load(told);
    const { flag } = settings[name as 'column'];
    expect(otherRules(others, config, sources)).toEqual([expect.stringMatching(`^--${flag} .* instead of other$`)]);
  });

  test('are those of this version, or the plan is refused', () => {
    const plan = planOf(told);
    expect(parsePlan(JSON.stringify(plan))).toEqual(plan);
    const { rate: _, ...fewer } = plan.rules;
    for (const rules of [fewer, { ...plan.rules, whatComesNext: 'true' }])
      expect(() => parsePlan(JSON.stringify({ ...plan, rules }))).toThrow('another version of expunge made this plan');
  });
});
