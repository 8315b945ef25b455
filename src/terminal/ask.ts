import { openSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { ExpungeError } from '../errors.ts';
import { count } from '../format.ts';
import { bareOutput, safeText } from './safe-output.ts';
import { isTerminal } from './style.ts';

/** The streams of a question: it is shown on stderr; the answer comes from stdin, or from the terminal if stdin is data. */
type PromptStreams = {
  stdin: NodeJS.ReadStream;
  stderr: NodeJS.WriteStream;
  env: NodeJS.ProcessEnv;
  stdinIsData: boolean;
};

const done = { delete: 'deleted', send: 'sent' } as const;

/** A question for the operator, and the answer that the command line may give. */
type Question = {
  expected: number;
  what: string; // '1,203 views on api.example.com'
  verb?: keyof typeof done; // what is done to them, in the question; 'delete' if missing
  yes: boolean; // --yes
  confirm: number | null; // --confirm
};

/**
 * Returns when this many deletions or requests are confirmed: by --yes, by the right --confirm, or by an operator who types the count, in three
 * tries. Throws USAGE otherwise, also without a terminal to ask on.
 */
export async function confirmCount(question: Question, asking: PromptStreams): Promise<void> {
  const { expected, what, yes, confirm, verb = 'delete' } = question;
  const wouldBe = `${what} would be ${done[verb]}`;
  if (confirm !== null) return checkConfirm(confirm, expected, wouldBe);
  if (yes) return;
  const next = `add --confirm ${expected} or --yes`;
  const message = `Type ${expected} to ${verb} ${what}, anything else to stop. It cannot be undone.`;
  const refusal = `${wouldBe}, but there is no terminal to confirm on`;
  const isRight = (typed: string) => isCount(typed, expected);
  if (!isRight(await askUntil(isRight, { message, asking, refusal, next })))
    throw new ExpungeError('USAGE', 'not confirmed; nothing was sent');
}

/** Returns the host of a protected target as the operator typed it, in three tries; '' for Ctrl-C. Throws USAGE without a terminal. */
export function typeHost(host: string, asking: PromptStreams): Promise<string> {
  const message = `${host} is a protected target. Type its host name to continue, or press Enter to stop.`;
  const refusal = `${host} is a protected target, and its host name cannot be typed without a terminal; nothing was sent`;
  const isRight = (typed: string) => typed.trim().toLowerCase() === host;
  return askUntil(isRight, { message, asking, refusal, next: `add --confirm-host ${host}` });
}

/** Returns when the operator answers yes; `what` is the question. Throws USAGE like `confirmCount`. */
export async function confirmYes(what: string, yes: boolean, asking: PromptStreams): Promise<void> {
  if (yes) return;
  const answer = await ask(
    `${what} Type yes to continue`,
    asking,
    `${what} There is no terminal to confirm on`,
    'add --yes',
  );
  if (answer.trim() !== 'yes') throw new ExpungeError('USAGE', 'not confirmed; nothing was changed');
}

const maxTries = 3;

type Asked = { message: string; asking: PromptStreams; refusal: string; next: string };

/** Asks again after a typing error, so that the list need not be read again. Returns the last answer; an empty answer, like Ctrl-C, ends it. */
async function askUntil(
  isRight: (typed: string) => boolean,
  { message, asking, refusal, next }: Asked,
): Promise<string> {
  let answer = await ask(message, asking, refusal, next);
  for (let left = maxTries - 1; left > 0 && answer.trim() !== '' && !isRight(answer); left--) {
    const again = `That is something else; ${left === 1 ? '1 try is' : `${left} tries are`} left. ${message}`;
    answer = await ask(again, asking, refusal, next);
  }
  return answer;
}

function checkConfirm(confirm: number, expected: number, wouldBe: string): void {
  if (confirm === expected) return;
  const message = `--confirm ${confirm}: expected ${count(expected)}, because ${wouldBe}; nothing was sent`;
  throw new ExpungeError('USAGE', message, { next: `check what would be deleted, then add --confirm ${expected}` });
}

/** Whether the digits are those of the count, with any grouping: `1,203`, `1.203`, `1 203`, `1'203`, `1_203`. */
function isCount(answer: string, expected: number): boolean {
  const digits = answer.replace(/[\s,.'’_]/g, '');
  return /^\d+$/.test(digits) && digits.replace(/^0+(?=.)/, '') === String(expected);
}

/** The answer, '' for Ctrl-C. Throws USAGE with `refusal` without a terminal. */
async function ask(message: string, asking: PromptStreams, refusal: string, next: string): Promise<string> {
  const input = isTerminal(asking.stderr, asking.env) ? openInput(asking) : null;
  if (input === null) throw new ExpungeError('USAGE', refusal, { next });
  try {
    const { isCancel, text } = await import('@clack/prompts'); // loaded only for a question, because it is slow to load
    const answer = await text({ message: safeText(message), input, output: bareOutput(asking.stderr) }); // raw: the prompt moves the cursor
    return isCancel(answer) ? '' : (answer ?? '');
  } finally {
    if (input !== asking.stdin) input.destroy();
    else input.pause();
  }
}

/** The stream of the answer; null without a terminal. */
function openInput({ stdin, stdinIsData }: PromptStreams): NodeJS.ReadStream | null {
  if (!stdinIsData) return stdin.isTTY ? stdin : null;
  try {
    return new ReadStream(openSync('/dev/tty', 'r'));
  } catch {
    return null;
  }
}
