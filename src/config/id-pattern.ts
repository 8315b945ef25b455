import { setFlagsFromString } from 'node:v8';

const maxLength = 20_000;

/**
 * The regular expression for whole ids. It takes time in proportion to the length of an id, whatever the pattern is: V8 switches to another engine if
 * its usual one takes too many steps. Throws an Error for a pattern that is invalid, or that V8 cannot run this way.
 */
export function compileIdPattern(pattern: string): RegExp {
  if (/\\p\{/i.test(pattern)) throw new Error('it holds \\p{…}: name the characters, as in [a-zäöü]');
  setFlagsFromString('--enable-experimental-regexp-engine');
  setFlagsFromString('--enable-experimental-regexp-engine-on-excessive-backtracks');
  try {
    new RegExp(whole(pattern)); // throws the clearer error
  } catch (error) {
    throw new Error(String(error).replace(/^.*\/[a-z]*: /s, ''));
  }
  const plain = whole(writtenOut(pattern));
  try {
    new RegExp(plain, 'l');
  } catch {
    throw new Error(lookingAround);
  }
  return new RegExp(plain);
}

const whole = (pattern: string) => `^(?:${pattern})$`;
const lookingAround = 'it refers to a group or looks around, as in \\1, (?=…) or (?<!…)';
const tokens = /\\.|\[(?:\\.|[^\]\\])*\]|\(\?<[a-z_$][\w$]*>|\{(\d+)(,)?(\d*)\}\??|./gis;

/** The pattern with its counted repetitions written out: the other engine takes none above 16. Groups lose their names, which copies would share. */
function writtenOut(pattern: string): string {
  const open = [{ before: '', last: '' }];
  const add = (text: string) => {
    const { before, last } = open.pop()!;
    open.push({ before: before + last, last: text });
  };
  for (const [token, least, isRange, most] of pattern.matchAll(tokens)) {
    if (/^\\[1-9k]/.test(token)) throw new Error(lookingAround);
    const { before, last } = open.at(-1)!;
    if (token === '(' || token.startsWith('(?<')) open.push({ before: '', last: '' });
    else if (token === ')') {
      open.pop();
      add(`(${before}${last})`);
    } else if (least !== undefined) open.at(-1)!.last = repeated(last, Number(least), isRange ? most! : least);
    else if ('*+?'.includes(token)) open.at(-1)!.last += token;
    else add(token);
  }
  return open[0]!.before + open[0]!.last;
}

/** `most`: '' = any number. */
function repeated(text: string, least: number, most: string): string {
  const more = most === '' ? 1 : Number(most) - least;
  if ((least + more) * text.length > maxLength) throw new Error('it repeats too much, as in (a{1,1000}){1,1000}');
  const rest = most === '' ? `(?:${text})*` : `${`(?:${text}`.repeat(more)}${')?'.repeat(more)}`;
  return `(?:${text.repeat(least)}${rest})`;
}
