import { withServer } from '../api/client.ts';
import { unlessAway } from '../api/remote-runs.ts';
import { refuseProtectFile, scheduleSettings } from '../api/sent-settings.ts';
import { namedTarget } from '../config/check-target.ts';
import { apiField, type Config } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { refuseLoneBurst } from '../operations/lone-burst.ts';
import type { Definition } from '../schedule/schedule.ts';
import { addedText } from '../terminal/schedule-text.ts';
import { type Invocation, jsonLines, reasonOf } from './command.ts';
import { readDefinition } from './schedule-add.ts';
import { type Placed, readRecords, withoutPlace } from './server-schedules.ts';
import { sayUnlessJson, warnOn } from './session.ts';

type Added = Placed & { done: 'added' | 'same' | 'changed' };

/**
 * `schedule add` by the API of a server, in whose audit trail the name of the token stands. What cannot be said over a server stays as it is where
 * a schedule is replaced: its protected ids and its heartbeat.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, config, stdout, stderr, verbosity } = invocation;
  refuseUnsent(invocation);
  refuseLoneBurst(invocation, null);
  const target = namedTarget(config);
  const [name = ''] = args;
  const definition = readDefinition(invocation);
  return withServer(invocation, sayUnlessJson(invocation), async (api) => {
    const find = async () => (await readRecords(api, target)).find(({ schedule }) => schedule.name === name)?.schedule;
    const before = (await find()) ?? null;
    const body = { target: target.fp, name, ...bodyOf(definition, config), reason: reasonOf(options) };
    const { done, ...answer } = await api.create<Added>(
      '/schedules',
      { ...body, replace: options.replace === true },
      false,
    );
    jsonLines(stdout, options.json)('schedule', { done, ...withoutPlace(answer) });
    const schedule = await find().catch(unlessAway);
    const isQuiet = verbosity === 'quiet';
    if (schedule) stderr.write(`${addedText(done, schedule, Date.now(), before, isQuiet, null)}\n`);
    else stderr.write(`Schedule ${name}: ${done}. What the server has now is not known.\n`);
    warnOn(stderr, answer.warnings);
    return 0;
  });
}

/** Throws USAGE for a file that the server does not have, and a URL that it would call. */
function refuseUnsent(invocation: Invocation): void {
  const next = 'leave it out, or do it where Redis can be reached, without --server';
  refuseProtectFile(invocation, { who: 'the workers of the server do', next });
  if (invocation.options.heartbeat !== undefined)
    throw new ExpungeError('USAGE', '--heartbeat: a server takes no URLs for schedules', { next });
}

/** The whole definition: what it does not say is as by default. */
function bodyOf({ settings: { burst, ...texts }, ...definition }: Definition, config: Config) {
  const { cron, tz, from, overlap, missed, priority, graceMs, maxGrowth, atMost, retryFailed } = definition;
  const given: Definition['settings'] = { ...texts, ...(config.rate !== undefined && { burst }) }; // a burst alone says nothing
  const sent = scheduleSettings.filter((name) => name !== 'maxDeletes');
  const values = sent.map((name) => (config[name] === true ? true : (given[name] ?? null)));
  return {
    ...Object.fromEntries(sent.map((name, i) => [apiField(name), values[i]])),
    cron,
    tz,
    from,
    overlap,
    missed,
    priority,
    max_deletes: config.maxDeletes,
    grace_seconds: graceMs / 1_000,
    max_growth: maxGrowth,
    at_most: atMost,
    retry_failed: retryFailed,
  };
}
