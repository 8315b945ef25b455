import { codeOfStatus } from './code.ts';
import { type HaltRule, statusesText } from './halt-rules.ts';

const codes = 512;
const never = 1e15;

/** A Lua string with one digit for each code of a cell: the number of the rule that counts it, from 1, or 0. */
export function ruleOfCodeLua(rules: readonly HaltRule[]): string {
  const digits = new Array<number>(codes).fill(0);
  for (const [i, { statuses }] of rules.entries()) {
    for (const [from, to] of statuses) digits.fill(i + 1, codeOfStatus(from), codeOfStatus(to) + 1);
  }
  return `'${digits.join('')}'`;
}

/** The number of the rule that counts absent ids, or 0. */
export function ruleOfAbsence(rules: readonly HaltRule[]): number {
  return rules.findIndex(({ isAbsence }) => isAbsence) + 1;
}

/** The rules as a Lua table; a limit that a rule has not is out of reach. */
export function haltRulesLua(rules: readonly HaltRule[]): string {
  return `{${rules.map(ruleLua).join(', ')}}`;
}

function ruleLua(rule: HaltRule): string {
  const { halt, count = never, allOfFirst = never, percent = { over: 100, after: never } } = rule;
  const reason = rule.reason.replace('{statuses}', statusesText(rule));
  const limits = `count = ${count}, first = ${allOfFirst}, over = ${percent.over}, after = ${percent.after}`;
  return `{halt = '${halt}', field = '${counterOf(rule)}', ${limits}, reason = ${JSON.stringify(reason)}}`;
}

/** The fields that count for the rules, as the inside of a Lua list. */
export function countersLua(rules: readonly HaltRule[]): string {
  return rules.map((rule) => `'${counterOf(rule)}'`).join(', ');
}

/** The field of the run record that counts the answers of a rule. */
function counterOf({ halt }: HaltRule): string {
  return `seen:${halt}`;
}
