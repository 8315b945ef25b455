import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/read-config.ts';
import { settings, settingText } from '../../../src/config/settings.ts';
import {
  isPlanCode,
  otherRules,
  planCode,
  type SealedPlan,
  sealedSettings,
  withRules,
} from '../../../src/operations/sealed-plan.ts';

const hash = 'ab12cd34ef'.padEnd(64, '0');

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

describe('the code of a plan', () => {
  test('is of eight letters of its hash, none of which look alike', () => {
    expect(planCode(hash)).toMatch(/^[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}$/);
    expect(planCode(hash)).not.toBe(planCode(hash.replace('ef', 'ee')));
    expect(planCode('0'.repeat(64))).toBe('AAAA-AAAA');
    expect(planCode('f'.repeat(64))).toBe('9999-9999');
  });

  test.for([
    [planCode(hash), true],
    [planCode(hash).toLowerCase(), true],
    [` ${planCode(hash).replace('-', '')}\n`, true],
    [hash, true],
    [planCode(hash).slice(0, 8), false],
    [hash.slice(0, 10), false],
    ['', false],
  ] as const)('%s is taken for it: %s', ([text, isCode]) => {
    expect(isPlanCode(hash, text)).toBe(isCode);
  });
});

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
});
