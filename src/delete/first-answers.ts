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

/** Stores a form of a run under a name, unless one is stored, and returns the stored one; '' = only read it, or there is none. */
type Share = (name: string, form: string) => Promise<string>;

/**
 * What the first answers tell about one run: their form, and whether anything answers this process. The status of a success with a body proves little:
 * an API may say 200 and, in the body, that it did nothing. If the form changes in the middle of a run, something else may be answering. The form that
 * a process learns first holds for the whole run.
 */
export class FirstAnswers {
  /** Whether any request was answered. */
  hasAnswer = false;
  #silentSinceMs: number | null = null;
  readonly #share: Share;
  readonly #learned = new Map<string, Learned>();

  constructor(share: Share) {
    this.#share = share;
  }

  /** Records the result of a request. `nowMs`: monotonic. */
  note(answer: Answer, nowMs: number): void {
    this.hasAnswer ||= answer.kind === 'status';
    this.#silentSinceMs ??= nowMs;
  }

  /** The time since the first request that failed without an answer, in ms; 0 once any request was answered. */
  silentMs(nowMs: number): number {
    return this.hasAnswer || this.#silentSinceMs === null ? 0 : nowMs - this.#silentSinceMs;
  }

  /** Takes over the forms that are known in this run, unless this process has learned them. Called before the answers of each chunk come. */
  async recall(resource: Resource, statuses: readonly number[]): Promise<void> {
    const names = statuses
      .map((status) => nameOf(resource, status))
      .filter((name) => (this.#learned.get(name)?.answers ?? 0) < learnedFrom);
    await Promise.all(names.map(async (name) => this.#takeOver(name, await this.#share(name, ''))));
  }

  /** Whether a success has the form of the first 20, by resource and status. These always have it. Asking twice about one answer is harmless. */
  fits(resource: Resource, answer: StatusAnswer): boolean {
    const name = nameOf(resource, answer.status);
    const learned = this.#learned.get(name) ?? nothingLearned();
    this.#learned.set(name, learned);
    const form = formOf(answer);
    if (learned.answers >= learnedFrom) return hasForm(form, learned);
    learn(form, learned);
    if (learned.answers === learnedFrom) this.#agree(name, learned);
    return true;
  }

  /** Agrees with the other processes on one form. Best effort: without Redis this process keeps its own. */
  #agree(name: string, learned: Learned): void {
    this.#share(name, toText(learned)).then(
      (form) => this.#takeOver(name, form),
      () => {},
    );
  }

  #takeOver(name: string, form: string): void {
    if (form !== '') this.#learned.set(name, fromText(form));
  }
}

/** The first answers of each of the last hundred runs of a process. */
export class FirstAnswersByRun {
  readonly #share: (run: string, ...form: Parameters<Share>) => Promise<string>;
  readonly #runs = new Map<string, FirstAnswers>();

  /** `share`: see `shareForm`. */
  constructor(share: (run: string, ...form: Parameters<Share>) => Promise<string>) {
    this.#share = share;
  }

  of(run: string): FirstAnswers {
    const first = this.#runs.get(run) ?? new FirstAnswers((...form) => this.#share(run, ...form));
    this.#runs.delete(run); // the run in use becomes the last one
    this.#runs.set(run, first);
    const [oldest] = this.#runs.keys();
    if (this.#runs.size > maxRuns) this.#runs.delete(oldest!);
    return first;
  }

  /** Forgets what this process knows of a run, which is halted: if it is resumed, the time without an answer begins anew. */
  forget(run: string): void {
    this.#runs.delete(run);
  }
}

function nameOf(resource: Resource, status: number): string {
  return `${resource} ${status}`;
}

function nothingLearned(): Learned {
  return { answers: 0, kinds: new Set(), always: null, ever: new Set(), yes: new Set() };
}

/** A form as text. Of names that vary, one tells as much as all of them. */
function toText({ kinds, always, ever, yes }: Learned): string {
  const names = always?.size === 0 ? [...ever].slice(0, 1) : [...ever];
  return JSON.stringify([[...kinds], always && [...always], names, [...yes]]);
}

function fromText(text: string): Learned {
  const [kinds, always, ever, yes] = JSON.parse(text) as [string[], string[] | null, string[], string[]];
  const sets = { kinds: new Set(kinds), ever: new Set(ever), yes: new Set(yes) };
  return { answers: learnedFrom, ...sets, always: always && new Set(always) };
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

/** Called for each success with a body, so it makes no lists. */
function hasForm({ kind, fields }: Form, { kinds, always, ever, yes }: Learned): boolean {
  if (!kinds.has(kind)) return false;
  if (fields === null || always === null) return true;
  for (const name of yes) if (fields[name] !== true) return false;
  if (always.size === 0 && ever.size > 0) return true; // their names vary, for example because they are ids
  for (const name of always) if (!Object.hasOwn(fields, name)) return false;
  for (const name in fields) if (!ever.has(name)) return false;
  return true;
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
