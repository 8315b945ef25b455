import { basename } from 'node:path';
import { type ApiClient, isAway, withServer } from '../api/client.ts';
import { readRecord } from '../api/remote-runs.ts';
import { refuseUnknownTarget } from '../api/remote-targets.ts';
import { listSettings, refuseProtectFile } from '../api/sent-settings.ts';
import { type AnsweredWarnings, readWarnings } from '../api/warnings.ts';
import { namedTarget } from '../config/check-target.ts';
import { apiField, settingText } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { isoTime } from '../format.ts';
import { delimiterOf, type Format, formatOf } from '../input/input-options.ts';
import { type InputFile, openInputs } from '../input/open-inputs.ts';
import { sumIds } from '../model/resource.ts';
import type { Target } from '../model/target.ts';
import { mapAdvice } from '../model/to-type.ts';
import { startProgress } from '../terminal/live-panel.ts';
import { deletedText, type Plan } from '../terminal/plan-text.ts';
import { type Invocation, reasonOf } from './command.ts';
import { sayDetached } from './finish-run.ts';
import { refuseOfWorkers, execute as runHere } from './run.ts';
import { askCount, progressOn, sayOf } from './session.ts';
import { showPlan } from './show-plan.ts';

/**
 * `run --detach` by the API of a server: sends it the list, shows the plan that it makes, asks, and has the plan carried out. Repeating it
 * names the unfinished run of the list, and makes no second one. A dry run needs no server.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, config, stdin } = invocation;
  if (options.dryRun) return runHere(invocation);
  refuseUnsent(invocation);
  const target = namedTarget(config);
  const files = await openInputs(args, stdin);
  const file = onlyFile(files);
  const format = formatOf(file, config.format ?? null);
  return withServer(invocation, sayOf(invocation), async (api) => {
    await refuseInVain(api, target);
    const planned = await sendList(invocation, api, { target, file, format });
    const plan = { ...planned.record, ...timeLimits(options) };
    let made: Made;
    try {
      showPlan(invocation, plan);
      await confirm(invocation, plan);
      made = await apply(invocation, api, planned);
    } catch (error) {
      // An order without an answer may still need it; else it would be there for a day.
      if (!isAway(error)) await api.json({ method: 'DELETE', path: `/plans/${planned.plan}` }).catch(() => {});
      throw error;
    }
    const { run, context } = await readRecord(api, made.run);
    return sayDetached(invocation, run, context.stops.target, readWarnings(made));
  });
}

/** Throws USAGE for what would not hold where the server reads the list and its workers delete. */
function refuseUnsent(invocation: Invocation): void {
  refuseForeground(invocation);
  refuseProtectFile(invocation, {
    who: 'the server does',
    next: 'take those ids out of the list first, or do it where Redis can be reached, without --server',
  });
}

/** Throws USAGE without --detach, and for flags about sending and keeping. */
export function refuseForeground(invocation: Invocation): void {
  if (invocation.options.detach !== true)
    throw new ExpungeError('USAGE', 'a server leaves ids to its workers; this command would not delete them itself', {
      next: 'add --detach, or do it where Redis can be reached, without --server',
    });
  refuseOfWorkers(invocation);
  if (invocation.sources.keep === 'flag')
    throw new ExpungeError('USAGE', '--keep: the server decides how long it keeps a run');
}

function onlyFile([file, ...others]: InputFile[]): InputFile {
  if (file !== undefined && others.length === 0) return file;
  throw new ExpungeError('USAGE', `a server takes one list at a time, got ${others.length + 1}`, {
    next: 'a command for each, or one file of all',
  });
}

/** A long list is not sent to a server that would refuse it. */
async function refuseInVain(api: ApiClient, target: Target): Promise<void> {
  if (api.role === 'read')
    throw new ExpungeError('CREDENTIALS', 'expected the role operate, the token has read', {
      next: (toType) => `ask for a token with that role: ${toType('token add', 'NAME', '--role', 'operate')}`,
    });
  await refuseUnknownTarget(api, target);
}

const types: Record<Format, string> = {
  csv: 'text/csv',
  lines: 'text/plain',
  ndjson: 'application/x-ndjson',
  json: 'application/json',
};

type Planned = { plan: string; record: Plan };
type Sent = { target: Target; file: InputFile; format: Format };

async function sendList(invocation: Invocation, api: ApiClient, { target, file, format }: Sent): Promise<Planned> {
  const { options, env, config } = invocation;
  let bytes = 0;
  const text = () => `Sending ${file.name}: ${(bytes / 1e6).toFixed(1)} MB`;
  const progress = startProgress(progressOn(invocation), env, text);
  async function* parts() {
    for await (const part of file.open()) {
      bytes += part.length;
      yield part;
    }
  }
  const delimiter = format === 'csv' && delimiterOf(file, config.delimiter) === '\t' ? { delimiter: 'tab' } : {};
  const query = {
    ...settingsOf(invocation),
    ...delimiter,
    target: target.fp,
    name: nameOf(file),
    partial: options.partial === true ? 'true' : undefined,
    piped: file.isPipe ? 'true' : undefined,
    reason: reasonOf(options),
  };
  try {
    const upload = { type: types[format], parts: parts() };
    return await api.json<Planned>({ method: 'POST', path: '/plans', query, upload, isLong: true });
  } catch (error) {
    throw named(error, `${query.name}.${format === 'lines' ? 'txt' : format}`, file.name);
  } finally {
    progress.stop();
  }
}

/** What the API calls a list: a name without its endings. */
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

/** The error with the name of the list that the person knows in place of that on the server. */
function named(error: unknown, there: string, here: string): unknown {
  if (!(error instanceof ExpungeError)) return error;
  const { code, message, advice } = error;
  const words = (text: string) => text.replaceAll(there, () => here);
  return new ExpungeError(code, words(message), { cause: error, next: mapAdvice(advice, words) });
}

/** How the list is read and deleted, as far as a setting of this command says so; else as the server has it. */
function settingsOf({ config, sources }: Invocation): Record<string, string> {
  const isLone = config.rate === undefined && sources.burst !== 'flag'; // a burst without a rate says nothing
  const given = listSettings.filter((name) => sources[name] !== 'default' && !(name === 'burst' && isLone));
  return Object.fromEntries(given.map((name) => [apiField(name), settingText(name, config[name]) ?? '']));
}

function timeLimits({ stopAt, maxDuration }: Invocation['options']) {
  return { stopAt: Number(stopAt ?? 0), maxActiveMs: Number(maxDuration ?? 0) };
}

async function confirm(invocation: Invocation, plan: Plan): Promise<void> {
  const expected = sumIds(plan.ids);
  if (expected === 0 && invocation.options.confirm === undefined) return; // an export that went wrong may hold nothing
  await askCount(invocation, expected, deletedText(plan));
}

/** What the server answers when it has made a run. */
export type Made = AnsweredWarnings & { run: string };

/** Has the plan carried out. */
async function apply({ options }: Invocation, api: ApiClient, { plan, record }: Planned): Promise<Made> {
  const { stopAt, maxActiveMs } = timeLimits(options);
  const body = {
    confirm: sumIds(record.ids),
    reason: reasonOf(options),
    priority: options.priority,
    ...(options.yes !== true && { expect_unprotected: 'true' }), // the plan that was confirmed says so
    ...(stopAt > 0 && { stop_at: isoTime(stopAt) }),
    ...(maxActiveMs > 0 && { max_duration_seconds: Math.ceil(maxActiveMs / 1_000) }),
  };
  return api.create<Made>(`/plans/${plan}/apply`, body);
}
