import { EventEmitter } from 'node:events';
import { Readable, Writable } from 'node:stream';
import type { Invocation, SignalSource, Verb } from '../commands/command.ts';
import type { Source, Sources } from '../config/read-config.ts';
import { apiField, type Config, type SettingName, settings } from '../config/settings.ts';
import type { Target } from '../model/target.ts';
import { scheduledSettings } from '../schedule/schedule.ts';
import type { Caller } from './access.ts';
import { parsedAs } from './problem.ts';
import type { ApiDeps } from './route.ts';

/** An order for a verb, as its command line would say it. */
export type Order = {
  verb: string;
  args?: string[];
  options?: Record<string, unknown>;
  target: Target;
  /** Settings as texts for their flags. A missing one is as the server has it, or has its default where it is of a list: see `ofLists`. */
  settings?: Partial<Record<SettingName, string | undefined>>;
};

/** What a verb printed: an object a line, and of what it told people the warnings. */
type Done = { lines: Record<string, unknown>[]; warnings: string[] };

/**
 * What a plan seals or a schedule stores: how a list is read and its ids are deleted. This server may be set up for another target, so what it
 * is set to holds for none of these. But its protected ids stay: they only ever keep ids from being deleted; and so long it keeps files.
 */
const ofLists = scheduledSettings.filter((name) => name !== 'protect' && name !== 'keep');

/** What is said of a file of protected ids goes with that file: it stays where that of this server does. */
const ofProtectFile: readonly SettingName[] = ['protectColumn', 'expectUnprotected'];

const toldAtMost = 64 * 1_024;
const linesAtMost = 16 * 1_024 * 1_024;

/** Does a verb in the name of a caller, so that an order over HTTP is checked and recorded as one of the command. Throws what it throws. */
export async function invokeVerb(
  deps: ApiDeps,
  caller: Caller,
  order: Order,
  load: () => Promise<Verb>,
): Promise<Done> {
  const out = collect(linesAtMost);
  const err = collect(toldAtMost);
  const { execute } = await load();
  await execute(invocationOf(deps, caller, order, out.stream, err.stream));
  const lines = out.text().split('\n').filter(Boolean);
  return { lines: lines.map((line) => JSON.parse(line)), warnings: warningsIn(err.text()) };
}

/** A line that begins with two spaces belongs to the one before it. */
function warningsIn(told: string): string[] {
  const all = told.replaceAll('\n  ', ' ').split('\n');
  return all.filter((line) => line.startsWith('warning: ')).map((line) => line.slice('warning: '.length));
}

/** The order as a verb reads it: nobody types anything, nothing is drawn, and the result is JSON. */
export function invocationOf(
  { config, sources, env, session: { address } }: ApiDeps,
  { name }: Caller,
  { verb, args = [], options = {}, target, settings: texts = {} }: Order,
  stdout = collect(0).stream,
  stderr = collect(0).stream,
): Invocation {
  const { npm_execpath: _, ...others } = env;
  const given = settingsOf(texts);
  const isOwnFile = config.protect !== undefined && given.protect === undefined;
  const replaced = ofLists.filter((name) => !(isOwnFile && ofProtectFile.includes(name)));
  const defaults = Object.fromEntries(replaced.map((name) => [name, settings[name].fallback]));
  const place = {
    baseUrl: target.baseUrl,
    account: target.account,
    allowHttp: new URL(target.baseUrl).hostname,
    clientId: undefined,
  };
  return {
    address,
    verb,
    args,
    argv: [],
    verbosity: 'quiet',
    stdout,
    stderr,
    options: { json: true, yes: true, sentByWorkers: true, ...options },
    config: Object.freeze({ ...config, ...defaults, ...place, ...given }) as Config,
    sources: sourcesOf(sources, Object.keys(given) as SettingName[]),
    env: { ...others, EXPUNGE_USER: name },
    signals: Object.assign(new EventEmitter(), { exit: () => {} }) as unknown as SignalSource,
    stdin: Readable.from([]) as unknown as NodeJS.ReadStream,
    outputClosed: new AbortController().signal,
  };
}

/** The values of settings that are given as texts. Throws `invalid` for what a flag would refuse, too. */
function settingsOf(texts: Order['settings'] & object): Partial<Record<SettingName, unknown>> {
  const given = Object.entries(texts).filter((entry): entry is [SettingName, string] => entry[1] !== undefined);
  return Object.fromEntries(
    given.map(([name, text]) => [name, parsedAs<unknown>(apiField(name), text, settings[name].parse)]),
  );
}

/** What a flag of the server says is no flag of this order. */
function sourcesOf(sources: Sources, given: readonly SettingName[]): Sources {
  const own = Object.entries(sources).map(([name, source]) => [name, source === 'flag' ? 'file' : source]);
  const all = (names: readonly SettingName[], source: Source) => names.map((name) => [name, source]);
  return Object.fromEntries([...own, ...all(ofLists, 'default'), ...all(given, 'flag')]);
}

/** Keeps the begin of what is written. */
function collect(most: number): { stream: NodeJS.WriteStream; text(): string } {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (bytes + chunk.length <= most) chunks.push(chunk);
      bytes += chunk.length;
      done();
    },
  });
  return { stream: stream as unknown as NodeJS.WriteStream, text: () => Buffer.concat(chunks).toString() };
}
