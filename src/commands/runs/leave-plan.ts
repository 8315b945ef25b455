import { basename, join } from 'node:path';
import { withServer } from '../../api/client.ts';
import { type PlanAtServer, requireUploadAllowed } from '../../api/remote-lists.ts';
import { refuseProtectFile } from '../../api/sent-settings.ts';
import { namedTarget, readTarget } from '../../config/check-target.ts';
import { ExpungeError } from '../../errors.ts';
import { withSpoolFolder } from '../../input/with-list.ts';
import { keepPlan, type PlanAnswer } from '../../operations/kept-plan.ts';
import type { MadePlan } from '../../operations/make-plan.ts';
import { type Session, withRedis } from '../../operations/session.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { infoWriter, lineWriter, toListAction } from '../session.ts';
import { makeShownPlan } from './make-plan.ts';
import { openOneList, sendOneList } from './send-list.ts';
import { waitText, writePlan } from './show-plan.ts';

// `plan` without a file: the plan waits in the inbox of Redis, or of the Redis of a server, until someone approves it.

/** Leaves the plan of a list in Redis. Sends nothing. */
export async function leavePlan(invocation: Invocation): Promise<number> {
  const { args, config } = invocation;
  refuseOwnFiles(invocation);
  return withRedis(
    invocation,
    infoWriter(invocation),
    (session) =>
      withSpoolFolder(config.stateDir, (folder) =>
        makeShownPlan(invocation, join(folder, 'plan.json'), async (made) => {
          sayWaiting(invocation, await keep(invocation, session, made, args[0]!));
          return 0;
        }),
      ),
    true,
  );
}

async function keep(
  { config, env }: Invocation,
  { redis }: Session,
  made: MadePlan,
  path: string,
): Promise<PlanAnswer> {
  const target = readTarget(config, env);
  const name = basename(path);
  const { shown } = await keepPlan(redis, { made, target, name, title: name, path, isDraft: false });
  return shown;
}

/** Sends the list to a server, and leaves its plan there. */
export async function leavePlanAtServer(invocation: Invocation): Promise<number> {
  const { config, options, stdout, stderr, toType } = invocation;
  refuseProtectFile(invocation, {
    who: 'the server does',
    next: 'make the plan without --server, with access to Redis',
  });
  const target = namedTarget(config);
  const sent = await openOneList(invocation);
  const action = toListAction(invocation);
  return withServer(invocation, infoWriter(invocation), async (api) => {
    await requireUploadAllowed(api, target, 'plan');
    const query = { wait: 'true', approve_by: options.approveBy };
    const planned = await sendOneList<PlanAtServer & PlanAnswer>(invocation, api, action, { target, ...sent, query });
    const out = options.json ? stderr : stdout;
    writePlan(out, planned.record, toType);
    sayWaiting(invocation, planned);
    return 0;
  });
}

/** Throws USAGE for several lists, and for a file of protected ids that only this command names: whoever approves the plan does not have it. */
function refuseOwnFiles({ args, sources, config }: Invocation): void {
  const next = 'or seal the plan in a file: --output plan.json';
  if (args.length > 1)
    throw new ExpungeError('USAGE', `the inbox takes one list at a time, got ${args.length}`, {
      next: `a plan for each, or one file of all; ${next}`,
    });
  if (sources.protect !== 'flag') return;
  throw new ExpungeError('USAGE', `--protect ${config.protect}: whoever approves the plan needs the same file`, {
    next: `set EXPUNGE_PROTECT here and where plans are approved; ${next}`,
  });
}

function sayWaiting(invocation: Invocation, shown: PlanAnswer): void {
  const { plan } = shown;
  lineWriter(invocation.stderr)(`Nothing was sent. Plan ${plan} ${waitText(shown)}.`);
  infoWriter(invocation)(`  Approve it: ${invocation.toType('plans approve', plan)}`);
  const { record: _, ...facts } = shown;
  jsonLines(invocation.stdout, invocation.options.json)('plan', facts);
}
