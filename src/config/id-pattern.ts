import { setFlagsFromString } from 'node:v8';

const maxSteps = 5_000;

/**
 * The regular expression for whole ids. It takes time in proportion to the length of an id, whatever the pattern is: V8 switches to another engine if
 * its usual one takes too many steps. Throws an Error for a pattern that is invalid, or that V8 cannot run this way.
 */
export function compileIdPattern(pattern: string): RegExp {
  if (/\\p\{/i.test(pattern)) throw new Error('it holds \\p{…}: name the characters, as in [a-zäöü]');
  if (countSteps(pattern) > maxSteps) throw new Error('it repeats too much, as in (a{1,1000}){1,1000}');
  setFlagsFromString('--enable-experimental-regexp-engine');
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
  const whole = `^(?:${pattern})$`;
  try {
    new RegExp(whole); // throws the clearer error
    new RegExp(whole, 'l');
  } catch (error) {
    throw new Error(/linear time/.test(String(error)) ? lookingAround : String(error).replace(/^.*\/[a-z]*: /s, ''));
  }
  return new RegExp(whole);
}

const lookingAround = 'it refers to a group or looks around, as in \\1, (?=…) or (?<!…)';

/** Number of steps of a pattern with its counted repetitions written out. */
function countSteps(pattern: string): number {
  const open = [{ steps: 0, last: 0 }];
  const add = (steps: number) => {
    const group = open.at(-1)!;
    group.steps += steps;
    group.last = steps;
  };
  for (const [token] of pattern.matchAll(/\\.|\[(?:\\.|[^\]\\])*\]|\{(\d+)(?:,(\d*))?\}|./gs)) {
    if (token === '(') open.push({ steps: 0, last: 0 });
    else if (token === ')' && open.length > 1) add(open.pop()!.steps);
    else if (/^\{\d/.test(token)) add(open.at(-1)!.last * (Math.max(...(token.match(/\d+/g) ?? []).map(Number)) - 1));
    else add(1);
  }
  return open.reduce((sum, { steps }) => sum + steps, 0);
}
