import { basename } from 'node:path';
import { apiField, settingText } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { isoTime } from '../format.ts';
import { detectDelimiter, type Format } from '../input/input-options.ts';
import type { InputFile } from '../input/open-inputs.ts';
import type { Run } from '../ledger/run.ts';
import { definitionsFor, requireSameAtServer } from '../ledger/same-definitions.ts';
import { isGone, type Outcome, outcomes } from '../model/outcome.ts';
import type { Definitions } from '../model/resource.ts';
import { mayAct, type Role } from '../model/role.ts';
import { isChosenToRetry, type Selection } from '../model/selection.ts';
import type { Target } from '../model/target.ts';
import { mapAdvice } from '../model/to-type.ts';
import type { PlanFacts } from '../operations/kept-plan.ts';
import type { ListAction } from '../operations/list-action.ts';
import type { PlanOperations } from '../operations/operations.ts';
import type { Plan } from '../terminal/plan-text.ts';
import { type ApiClient, isAway } from './client.ts';
import { readRecord } from './remote-runs.ts';
import { refuseUnknownTarget } from './remote-targets.ts';
import { listSettings } from './sent-settings.ts';
import { type AnsweredWarnings, readWarnings } from './warnings.ts';

// Requests about lists: a server makes a plan of a list, carries the plan out or forgets it, and makes runs of ids that are retried.

/** A plan that a server has made. `record`: how it is shown. `protected_host`: the host that has to be typed; null = none. */
export type PlanAtServer = { plan: string; record: Plan; protected_host: string | null };

/** The answer of a server that has made a run. */
export type MadeAtServer = AnsweredWarnings & { run: string };

/** A list to send. `onBytes`: called with the number of bytes of the file that were sent. */
type Sent = {
  target: Target;
  file: InputFile;
  format: Format;
  query?: Readonly<Record<string, string | undefined>>; // more fields of the plan
  onBytes(bytes: number): void;
};

/** Throws if the server would refuse the list, before a long list is sent. */
export async function requireUploadAllowed(api: ApiClient, target: Target, needed: Role): Promise<void> {
  if (!mayAct(api.role, needed))
    throw new ExpungeError(
      'CREDENTIALS',
      `this token has the role "${api.role}", but this command requires "${needed}"`,
      {
        next: (toType) =>
          `ask for a token with that role: ${toType('token add', 'NAME', '--role', needed)}${api.role === 'plan' ? `; or have it approved: ${toType('plan', 'FILE')}` : ''}`,
      },
    );
  await refuseUnknownTarget(api, target);
}

/** Throws GUARD if the server defines a resource of these definitions in another way. */
export async function refuseOtherDefinitions(api: ApiClient, definitions: string): Promise<void> {
  if (definitions === '') return;
  const words = await api.json<{ definitions: Definitions }>({ method: 'GET', path: '/words' });
  requireSameAtServer(definitions, words.definitions);
}

const types: Record<Format, string> = {
  csv: 'text/csv',
  lines: 'text/plain',
  ndjson: 'application/x-ndjson',
  json: 'application/json',
};

/** Sends a list, of which the server makes a plan. Throws the refusal of the server, with the name that the list has here. */
export async function sendList<T extends PlanAtServer>(
  api: ApiClient,
  action: Pick<ListAction, 'config' | 'sources' | 'options' | 'by' | 'isAsked'>,
  { target, file, format, query: more, onBytes }: Sent,
): Promise<T> {
  const { config, options, by, isAsked } = action;
  await refuseOtherDefinitions(api, definitionsFor(config));
  async function* parts() {
    let bytes = 0;
    for await (const part of file.open()) {
      bytes += part.length;
      onBytes(bytes);
      yield part;
    }
  }
  const delimiter = format === 'csv' && detectDelimiter(file, config.delimiter) === '\t' ? { delimiter: 'tab' } : {};
  const query = {
    ...settingsOf(action),
    ...delimiter,
    ...(isAsked && !file.isPipe && { allow_open_end: 'true' }), // the person who is asked sees the last id
    target: target.fp,
    name: nameOf(file),
    partial: options.partial === true ? 'true' : undefined,
    piped: file.isPipe ? 'true' : undefined,
    reason: by.reason,
    ...more,
  };
  try {
    const upload = { type: types[format], parts: parts() };
    return await api.json<T>({ method: 'POST', path: '/plans', query, upload, isLong: true });
  } catch (error) {
    throw named(error, `${query.name}.${format === 'lines' ? 'txt' : format}`, file.name);
  }
}

/** Has a plan carried out that a person has seen, or whose ids may be deleted unseen (`isAsked` is false). */
export function carryOut(
  api: ApiClient,
  { options, by, isAsked }: Pick<ListAction, 'options' | 'by' | 'isAsked'>,
  plan: string,
  confirm: number,
): Promise<MadeAtServer> {
  const { startAt = 0, stopAt = 0, maxDuration = 0, confirmHost } = options;
  const body = {
    confirm,
    confirm_host: confirmHost,
    reason: by.reason,
    ...(isAsked && { expect_unprotected: 'true', allow_mixed_ids: 'true' }), // the confirmed plan shows it
    ...(startAt > 0 && { start_at: isoTime(startAt) }),
    ...(stopAt > 0 && { stop_at: isoTime(stopAt) }),
    ...(maxDuration > 0 && { max_duration_seconds: Math.ceil(maxDuration / 1_000) }),
  };
  return api.create<MadeAtServer>(`/plans/${plan}/apply`, body);
}

/**
 * Has a plan forgotten that was not carried out because of `error`. A request without an answer may still need the plan; if it is not forgotten, it
 * stays for a day.
 */
export async function forgetPlan(api: ApiClient, { plan }: PlanAtServer, error: unknown): Promise<void> {
  if (!isAway(error)) await api.json({ method: 'DELETE', path: `/plans/${plan}` }).catch(() => {});
}

/** Actions on plans through the API of a server, whose audit trail records the name of the token. */
export function remotePlans(api: ApiClient): PlanOperations {
  return {
    async list() {
      const query = { all: 'true' };
      return (await api.json<{ items: PlanFacts[] }>({ method: 'GET', path: '/plans', query })).items;
    },
    show: (id) => api.json({ method: 'GET', path: `/plans/${id}` }),
    async apply(id, action, confirm) {
      const made = await carryOut(api, action, id, confirm);
      return { ...(await readRecord(api, made.run)), warnings: readWarnings(made) };
    },
    refuse: (id, { reason }) => api.json({ method: 'POST', path: `/plans/${id}/refuse`, body: { reason } }),
    async withdraw(id) {
      await api.json({ method: 'DELETE', path: `/plans/${id}` });
    },
  };
}

/** Rows of a run with the same outcome and code. */
export type RowGroup = { outcome: Outcome; code: string; count: number };

/** The rows that a retry chooses, by outcome and code. For rows that are gone, the API lists only counts. */
export async function readChosen(api: ApiClient, { id, counts }: Run, only: Selection): Promise<RowGroup[]> {
  const { items } = await api.json<{ items: RowGroup[] }>({
    method: 'GET',
    path: `/runs/${id}/failures`,
    isLong: true,
  });
  const gone = outcomes.filter(isGone).map((outcome): RowGroup => ({ outcome, code: 'gone', count: counts[outcome] }));
  return [...items, ...gone].filter((group) => group.count > 0 && isChosenToRetry(only, group));
}

/** The host that the server wants typed before it retries ids of this run; null if none. */
export async function readProtectedHost(api: ApiClient, { id }: Pick<Run, 'id'>): Promise<string | null> {
  return (await api.json<{ protected_host: string | null }>({ method: 'GET', path: `/runs/${id}` })).protected_host;
}

/** Has a run made of ids of another run. `expected`: how many ids a person has confirmed. */
export function retryRun(
  api: ApiClient,
  { config, sources, options, by }: Pick<ListAction, 'config' | 'sources' | 'options' | 'by'>,
  { run, only, expected }: { run: Run; only: Selection | undefined; expected: number },
): Promise<MadeAtServer> {
  const { confirmHost, startAt = 0 } = options;
  const body = {
    confirm: expected,
    confirm_host: confirmHost,
    reason: by.reason,
    only,
    ...(sources.grace !== 'default' && { grace: settingText('grace', config.grace) }),
    ...(startAt > 0 && { start_at: isoTime(startAt) }),
  };
  return api.create<MadeAtServer>(`/runs/${run.id}/retry`, body);
}

/** The name of a list in the API: without its endings. */
function nameOf({ name, isStdin }: InputFile): string {
  if (isStdin) return 'stdin';
  const plain = basename(name)
    .replace(/\.(gz|zst)$/i, '')
    .replace(/\.\w+$/, '');
  return (
    plain
      .replace(/[^\w. -]/g, '_')
      .replace(/^[. ]+/, '')
      .slice(0, 100) || 'list'
  );
}

/** The error with the name of the list that the person knows instead of its name on the server. */
function named(error: unknown, there: string, here: string): unknown {
  if (!(error instanceof ExpungeError)) return error;
  const { code, message, advice } = error;
  const words = (text: string) => text.replaceAll(there, () => here);
  return new ExpungeError(code, words(message), { cause: error, next: mapAdvice(advice, words) });
}

/** The settings of this command about reading and deleting the list; the server decides the others. */
function settingsOf({ config, sources }: Pick<ListAction, 'config' | 'sources'>): Record<string, string> {
  const given = listSettings.filter((name) => sources[name] !== 'default');
  return Object.fromEntries(given.map((name) => [apiField(name), settingText(name, config[name]) ?? '']));
}
