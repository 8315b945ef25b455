import { basename } from 'node:path';
import { withServer } from '../../api/client.ts';
import { type PlanAtServer, requireUploadAllowed } from '../../api/remote-lists.ts';
import { refuseProtectFile } from '../../api/sent-settings.ts';
import { namedTarget, readTarget } from '../../config/check-target.ts';
import { ExpungeError } from '../../errors.ts';
import { openInputs } from '../../input/open-inputs.ts';
import type { List } from '../../input/with-list.ts';
import { keepPlan, type PlanAnswer } from '../../operations/kept-plan.ts';
import { makePlan, newOrigin } from '../../operations/make-plan.ts';
import { withRedis } from '../../operations/session.ts';
import type { RedisClient } from '../../redis/client.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { infoWriter, lineWriter, toListAction } from '../session.ts';
import { withNamedList } from './run.ts';
import { openOneList, sendOneList } from './send-list.ts';
import { waitText, writePlan } from './show-plan.ts';

/**
 * `plan`: reads a list as `run` would, and leaves its plan in the inbox of Redis, or of the Redis of a server, until someone applies it. Sends
 * nothing.
 */
export async function execute(invocation: Invocation): Promise<number> {
  return invocation.config.server === undefined ? planHere(invocation) : planAtServer(invocation);
}

async function planHere(invocation: Invocation): Promise<number> {
  const { args, config, env, options, toType, stdout, stderr } = invocation;
  await refuseOwnFiles(invocation);
  const action = toListAction(invocation);
  const target = readTarget(config, env);
  const origin = newOrigin(action.by, options.approveBy);
  const [path] = args as [string];
  const name = basename(path);
  const plan = async (redis: RedisClient, list: List) => {
    const made = await makePlan(redis, action, list, { origin });
    writePlan(options.json ? stderr : stdout, made.shown, toType); // the plan is the result
    const { shown } = await keepPlan(redis, { made, target, name, title: name, path, isDraft: false });
    return sayWaiting(invocation, shown);
  };
  return withNamedList(invocation, args, (list) =>
    withRedis(invocation, infoWriter(invocation), ({ redis }) => plan(redis, list), true),
  );
}

/** Sends the list to a server, and leaves its plan there. */
async function planAtServer(invocation: Invocation): Promise<number> {
  const { config, options, stdout, stderr, toType } = invocation;
  refuseProtectFile(invocation, {
    who: 'the server does',
    next: 'take those ids out of the list first',
  });
  const target = namedTarget(config);
  const sent = await openOneList(invocation);
  const action = toListAction(invocation);
  return withServer(invocation, infoWriter(invocation), async (api) => {
    await requireUploadAllowed(api, target, 'plan');
    const query = { wait: 'true', approve_by: options.approveBy };
    const planned = await sendOneList<PlanAtServer & PlanAnswer>(invocation, api, action, { target, ...sent, query });
    writePlan(options.json ? stderr : stdout, planned.record, toType);
    return sayWaiting(invocation, planned);
  });
}

/**
 * Throws USAGE for what only this command has, and whoever applies the plan does not: several lists, a list that can be read only once, and a file of
 * protected ids.
 */
async function refuseOwnFiles({ args, sources, config, stdin }: Invocation): Promise<void> {
  if (args.length > 1)
    throw new ExpungeError('USAGE', `a plan takes one list, got ${args.length}`, {
      next: 'make a plan for each, or one file of all',
    });
  if (sources.protect === 'flag')
    throw new ExpungeError('USAGE', `--protect ${config.protect}: whoever applies the plan needs the same file`, {
      next: 'set EXPUNGE_PROTECT here and where plans are applied',
    });
  const [file] = await openInputs(args, stdin);
  if (file!.isPipe)
    throw new ExpungeError('USAGE', `${file!.name}: expected a file, because the plan keeps it; got a pipe`, {
      next: 'write the ids to a file first',
    });
}

function sayWaiting(invocation: Invocation, shown: PlanAnswer): number {
  const { plan, approve_by: approver } = shown;
  lineWriter(invocation.stderr)(`Nothing was sent. Plan ${plan} ${waitText(shown)}.`);
  infoWriter(invocation)(`  ${approver === null ? 'Carry it out' : 'Approve it'}: ${invocation.toType('apply', plan)}`);
  const { record: _, ...facts } = shown;
  jsonLines(invocation.stdout, invocation.options.json)('plan', facts);
  return 0;
}
