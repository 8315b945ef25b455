import { withServer } from '../api/client.ts';
import { namedTarget } from '../config/check-target.ts';
import { apiField, type Config } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import type { Target } from '../model/target.ts';
import { type Definition, scheduledSettings } from '../schedule/schedule.ts';
import { addedText, differences } from '../terminal/schedule-text.ts';
import { type Invocation, jsonLines, reasonOf } from './command.ts';
import { readDefinition } from './schedule-add.ts';
import { type Placed, readRecords, withoutPlace } from './server-schedules.ts';
import { sayUnlessJson, warnOn } from './session.ts';

/**
 * `schedule add` by the API of a server, in whose audit trail the name of the token stands. What cannot be said over a server stays as it is where
 * a schedule is replaced: its protected ids and its heartbeat.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, config, stdout, stderr, verbosity } = invocation;
  refuseUnsent(invocation);
  const target = namedTarget(config);
  const [name = ''] = args;
  const definition = readDefinition(invocation);
  return withServer(invocation, sayUnlessJson(invocation), async (api) => {
    const find = async () => (await readRecords(api, target)).find(({ schedule }) => schedule.name === name)?.schedule;
    const before = (await find()) ?? null;
    const body = { target: target.fp, name, ...bodyOf(definition, config), reason: reasonOf(options) };
    const answer = await api.create<Placed>('/schedules', { ...body, replace: options.replace === true });
    const schedule = await find();
    if (schedule === undefined) throw removedMeanwhile(target, name);
    const done = before === null ? 'added' : differences(before, schedule).length > 0 ? 'changed' : 'same';
    stderr.write(`${addedText(done, schedule, Date.now(), before, verbosity === 'quiet')}\n`);
    warnOn(stderr, answer.warnings);
    jsonLines(stdout, options.json)('schedule', withoutPlace(answer));
    return 0;
  });
}

/** Throws USAGE for a file that the server does not have, and a URL that it would call. */
function refuseUnsent({ options, config }: Invocation): void {
  const next = 'leave it out, or do it where Redis can be reached, without --server';
  if (config.protect !== undefined)
    throw new ExpungeError('USAGE', `--protect ${config.protect}: the workers of the server do not have this file`, {
      next,
    });
  if (options.heartbeat !== undefined)
    throw new ExpungeError('USAGE', '--heartbeat: a server takes no URLs for schedules', { next });
}

/** The whole definition: what it does not say is as by default. */
function bodyOf({ settings: texts, ...definition }: Definition, { maxDeletes, ...config }: Config) {
  const { cron, tz, from, overlap, missed, priority, graceMs, maxGrowth, allowEmpty, atMost, retryFailed } = definition;
  const sent = scheduledSettings.filter((name) => name !== 'protect' && name !== 'maxDeletes');
  const values = sent.map((name) => (config[name] === true ? true : (texts[name] ?? null)));
  return {
    ...Object.fromEntries(sent.map((name, i) => [apiField(name), values[i]])),
    ...{ cron, tz, from, overlap, missed, priority, max_deletes: maxDeletes, grace_seconds: graceMs / 1_000 },
    ...{ max_growth: maxGrowth, allow_empty: allowEmpty, at_most: atMost, retry_failed: retryFailed },
  };
}

function removedMeanwhile({ baseUrl }: Target, name: string): ExpungeError {
  return new ExpungeError('USAGE', `schedule ${name} of ${baseUrl} was removed by somebody else meanwhile`);
}
