import type { Resource } from '../model/resource.ts';
import type { Answer } from './verdict.ts';

type StatusAnswer = Answer & { kind: 'status' };

/** The parts of a body that its form consists of. `fields`: of a JSON object; null for any other body, and for an object longer than what is kept. */
type Form = { kind: string; fields: Readonly<Record<string, unknown>> | null };

/**
 * What the first answers had in common. `kinds`: each kind of them. `always`: the fields of all of them; `ever`: the fields of any of them; `yes`: the
 * fields that were true in all of them.
 */
type Learned = { answers: number; kinds: Set<string>; always: Set<string> | null; ever: Set<string>; yes: Set<string> };

const learnedFrom = 20; // answers
const maxRuns = 100;

/**
 * What the first answers tell a process about one run: their form, and whether anything answers. The status of a success with a body proves little: an
 * API may say 200 and, in the body, that it did nothing. If the form changes in the middle of a run, something else may be answering.
 */
export class FirstAnswers {
  /** Whether any request was answered. */
  hasAnswer = false;
  #silentSinceMs: number | null = null;
  readonly #learned = new Map<string, Learned>();

  /** Records the result of a request. `nowMs`: monotonic. */
  note(answer: Answer, nowMs: number): void {
    this.hasAnswer ||= answer.kind === 'status';
    this.#silentSinceMs ??= nowMs;
  }

  /** The time since the first request that failed without an answer, in ms; 0 once any request was answered. */
  silentMs(nowMs: number): number {
    return this.hasAnswer || this.#silentSinceMs === null ? 0 : nowMs - this.#silentSinceMs;
  }

  /** Whether a success has the form of the first 20, by resource and status. These always have it. Asking twice about one answer is harmless. */
  fits(resource: Resource, answer: StatusAnswer): boolean {
    const learned = this.#learnedOf(`${resource} ${answer.status}`);
    const form = formOf(answer);
    if (learned.answers >= learnedFrom) return hasForm(form, learned);
    learn(form, learned);
    return true;
  }

  #learnedOf(key: string): Learned {
    const known = this.#learned.get(key);
    if (known !== undefined) return known;
    const learned = {
      answers: 0,
      kinds: new Set<string>(),
      always: null,
      ever: new Set<string>(),
      yes: new Set<string>(),
    };
    this.#learned.set(key, learned);
    return learned;
  }
}

/** The first answers of each of the last hundred runs of a process. */
export class FirstAnswersByRun {
  readonly #runs = new Map<string, FirstAnswers>();

  of(run: string): FirstAnswers {
    const first = this.#runs.get(run) ?? new FirstAnswers();
    this.#runs.delete(run); // the run in use becomes the last one
    this.#runs.set(run, first);
    const [oldest] = this.#runs.keys();
    if (this.#runs.size > maxRuns) this.#runs.delete(oldest!);
    return first;
  }

  /** Forgets what is known of a run. A person who resumes a halted run has seen the answers that halted it. */
  forget(run: string): void {
    this.#runs.delete(run);
  }
}

function learn({ kind, fields }: Form, learned: Learned): void {
  learned.answers++;
  learned.kinds.add(kind);
  if (fields === null) return;
  const names = Object.keys(fields);
  const yes = names.filter((name) => fields[name] === true);
  learned.yes = new Set(learned.always === null ? yes : yes.filter((name) => learned.yes.has(name)));
  learned.always = new Set(learned.always === null ? names : names.filter((name) => learned.always!.has(name)));
  for (const name of names) learned.ever.add(name);
}

function hasForm({ kind, fields }: Form, { kinds, always, ever, yes }: Learned): boolean {
  if (!kinds.has(kind)) return false;
  if (fields === null || always === null) return true;
  if ([...yes].some((name) => fields[name] !== true)) return false;
  if (always.size === 0 && ever.size > 0) return true; // their names vary, for example because they are ids
  return (
    [...always].every((name) => Object.hasOwn(fields, name)) && Object.keys(fields).every((name) => ever.has(name))
  );
}

function formOf({ headers, body }: StatusAnswer): Form {
  const [type = ''] = String(headers['content-type'] ?? '').split(';');
  const text = body.trim();
  const fields = text.startsWith('{') ? fieldsIn(text) : null;
  return { kind: `${type.trim().toLowerCase()} ${kindOf(text)}`, fields };
}

/** The kind of a body: `true`, `false` or `null`, otherwise its first character as far as that says what follows. */
function kindOf(text: string): string {
  if (/^(true|false|null)$/.test(text)) return text;
  return /^[{["]/.exec(text)?.[0] ?? (text === '' ? 'empty' : 'text');
}

function fieldsIn(text: string): Form['fields'] {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}
