import { suggest } from '../model/suggest.ts';
import { duration } from './parse-setting.ts';

/**
 * The source of the list of a schedule. It is defined in the configuration file of the process that reads it; everything else uses its name, so that
 * neither Redis nor an API can make a worker run a command or delete what a file lists.
 */
export type ListSource =
  | {
      kind: 'glob';
      glob: string;
      /** The folder that files move to after a successful run; null = they stay. */
      archive: string | null;
      /** A file is taken if it has not changed during this wait, in ms. */
      settleMs: number;
    }
  | { kind: 'command'; command: readonly string[]; timeoutMs: number }
  | { kind: 'url'; url: string; caFile: string | null; timeoutMs: number };

export type ListSources = Readonly<Record<string, ListSource>>;

/** Whether a source or a schedule can have this name, which is part of Redis keys. */
export const isName = (text: string): boolean => namePattern.test(text);

export const namePattern = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

export const nameRule = 'letters, digits, . _ and -, at most 64 of them';

/** The `sources` of a configuration file. Throws an Error that says what was expected, and where. */
export function readSources(value: unknown): ListSources {
  if (!isObject(value)) throw new Error('expected an object with a source for each name');
  return Object.fromEntries(Object.entries(value).map(([name, source]) => [name, readNamed(name, source)]));
}

function readNamed(name: string, value: unknown): ListSource {
  if (!isName(name)) throw new Error(`"${name}": expected a name of ${nameRule}`);
  try {
    return readSource(value);
  } catch (error) {
    throw new Error(`"${name}": ${(error as Error).message}`);
  }
}

const kinds = {
  glob: ['archive', 'settle'],
  command: ['timeout'],
  url: ['caFile', 'timeout'],
} as const;

type Kind = keyof typeof kinds;

function readSource(value: unknown): ListSource {
  const names = isObject(value) ? (Object.keys(kinds) as Kind[]).filter((kind) => value[kind] !== undefined) : [];
  const [kind] = names;
  if (!isObject(value) || kind === undefined || names.length > 1) {
    throw new Error('expected one of {"glob": "…"}, {"command": ["…"]} and {"url": "https://…"}');
  }
  rejectUnknown(value, [kind, ...kinds[kind]]);
  switch (kind) {
    case 'glob':
      return {
        kind,
        glob: text(value, 'glob'),
        archive: optional(value, 'archive'),
        settleMs: time(value, 'settle', '5s'),
      };
    case 'command':
      return { kind, command: argv(value.command), timeoutMs: time(value, 'timeout', '10min') };
    case 'url':
      return {
        kind,
        url: readUrl(text(value, 'url')),
        caFile: optional(value, 'caFile'),
        timeoutMs: time(value, 'timeout', '10min'),
      };
  }
}

function rejectUnknown(value: Record<string, unknown>, known: readonly string[]): void {
  const wrong = Object.keys(value).find((name) => !known.includes(name));
  if (wrong !== undefined) throw new Error(`"${wrong}" is not an option of "${known[0]}".${suggest(wrong, known)}`);
}

function text(value: Record<string, unknown>, name: string): string {
  const found = value[name];
  if (typeof found === 'string' && found !== '') return found;
  throw new Error(`"${name}": expected text`);
}

function optional(value: Record<string, unknown>, name: string): string | null {
  return value[name] === undefined ? null : text(value, name);
}

function argv(value: unknown): string[] {
  const isList = Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === 'string');
  if (isList && value[0] !== '') return value;
  throw new Error(
    '"command": expected a list of a program and its arguments; no shell reads it: ["psql", "-Atc", "select …"]',
  );
}

function time(value: Record<string, unknown>, name: string, fallback: string): number {
  try {
    return Math.min(duration(String(value[name] ?? fallback)), maxMs);
  } catch (error) {
    throw new Error(`"${name}": ${(error as Error).message}`);
  }
}

const maxMs = 86_400_000; // timers take at most 24 days, and no source needs more than a day

/** Reads a URL. It may hold a query, which may be a secret, so the URL is never shown. */
function readUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new Error('"url": expected a URL like https://lists.example.com/expired.csv');
  if (url.username || url.password) throw new Error('"url": it cannot hold a user name or password');
  return url.href;
}

/** Whether a value of JSON is an object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Describes a source without secrets: of a command only its program, of a URL neither query nor fragment. */
export function describeSource(source: ListSource): string {
  if (source.kind === 'glob') return `files ${source.glob}`;
  if (source.kind === 'command') return `command ${source.command[0]}`;
  return `URL ${source.url.split(/[?#]/)[0]}`;
}
