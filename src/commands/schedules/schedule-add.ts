import { refusePlainHttp, targetForAction } from '../../config/check-target.ts';
import { isName, nameRule } from '../../config/list-source.ts';
import { ExpungeError } from '../../errors.ts';
import type { Added } from '../../operations/add-schedule.ts';
import { toDefinition } from '../../operations/schedule-definition.ts';
import type { Definition } from '../../schedule/schedule.ts';
import { addedText } from '../../terminal/schedule-text.ts';
import { type Invocation, jsonLines, readReason } from '../command.ts';
import { askHost, readBy, writeWarnings } from '../session.ts';
import { withOperations } from '../with-operations.ts';

/** Adds a schedule, or changes one with --replace. Repeating it changes nothing. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, options, config, env, stdout } = invocation;
  const target = targetForAction(config, env);
  const [name = ''] = args;
  if (!isName(name)) throw new ExpungeError('USAGE', `"${name}": expected a name of ${nameRule}`);
  const definition = readDefinition(invocation); // a mistake costs no request
  const confirmHost = await askHost(invocation, target);
  const action = { target, name, by: readBy(invocation), definition, replace: options.replace === true, confirmHost };
  const added = await withOperations(invocation, 'schedules', (schedules) => schedules.add(action), true);
  sayAdded(invocation, name, added);
  jsonLines(stdout, options.json)('schedule', { done: added.done, ...added.facts });
  return 0;
}

function sayAdded({ config, toType, stderr, verbosity }: Invocation, name: string, added: Added): void {
  const { done, schedule, at, before, warnings } = added;
  const telling = { toType, isQuiet: verbosity === 'quiet', isTriable: config.server === undefined };
  if (schedule !== null) stderr.write(`${addedText(done, schedule, at, before, telling)}\n`);
  else stderr.write(`Schedule ${name}: ${done}. What the server has now is not known.\n`);
  writeWarnings(stderr, warnings, toType);
}

/** The schedule that the options and settings define. Throws USAGE for missing or contradictory options. */
export function readDefinition({ options, config }: Pick<Invocation, 'options' | 'config'>): Definition {
  const { heartbeat = '', maxDelay: maxDelayMs, maxDuration: maxActiveMs, ...given } = options;
  const { stopAt } = options as { stopAt?: unknown }; // a time of day here, and a moment for the commands that make a run
  return toDefinition({
    cron: given.cron,
    tz: given.tz,
    from: given.from,
    missed: given.missed,
    maxDelayMs,
    maxGrowth: given.maxGrowth,
    atMost: given.atMost,
    retryFailed: given.retryFailed,
    maxActiveMs,
    stopAt: typeof stopAt === 'string' ? stopAt : undefined,
    settings: config,
    heartbeat: readHeartbeat(heartbeat, config),
    note: readReason(options),
  });
}

function readHeartbeat(url: string, { allowHttp }: Invocation['config']): string {
  if (url !== '') refusePlainHttp('--heartbeat', new URL(url).origin, allowHttp, 'hide that an occurrence failed');
  return url;
}
