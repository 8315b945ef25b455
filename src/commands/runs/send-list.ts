import { type ApiClient, withServer } from '../../api/client.ts';
import {
  carryOut,
  forgetPlan,
  type MadeAtServer,
  type PlanAtServer,
  requireUploadAllowed,
  sendList,
} from '../../api/remote-lists.ts';
import { readRecord } from '../../api/remote-runs.ts';
import { refuseProtectFile } from '../../api/sent-settings.ts';
import { readWarnings } from '../../api/warnings.ts';
import { namedTarget } from '../../config/check-target.ts';
import { ExpungeError } from '../../errors.ts';
import { detectFormat, type Format } from '../../input/input-options.ts';
import { type InputFile, openInputs } from '../../input/open-inputs.ts';
import { forecast } from '../../model/forecast.ts';
import { sumIds } from '../../model/resource.ts';
import type { Target } from '../../model/target.ts';
import type { ListAction } from '../../operations/list-action.ts';
import { startProgress } from '../../terminal/live-panel.ts';
import { deletedText, type Plan } from '../../terminal/plan-text.ts';
import type { Invocation } from '../command.ts';
import { askCount, askHost, infoWriter, progressStream, toListAction } from '../session.ts';
import { sayDetached } from './finish-run.ts';
import { refuseWorkerFlags, execute as runHere } from './run.ts';
import { showPlan } from './show-plan.ts';

/**
 * `run --detach` through the API of a server: sends the list, shows the plan that the server makes, asks, and has the server carry it out. Repeating
 * it names the unfinished run of the list, and makes no second one. A dry run needs no server.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { options, config } = invocation;
  if (options.dryRun || options.rehearse) return runHere(invocation);
  refuseUnsupportedOptions(invocation);
  const target = namedTarget(config);
  const sent = await openOneList(invocation);
  const action = toListAction(invocation);
  return withServer(invocation, infoWriter(invocation), async (api) => {
    await requireUploadAllowed(api, target, 'operate');
    const planned = await sendOneList(invocation, api, action, { target, ...sent });
    const plan = planWithin(planned.record, options);
    let made: MadeAtServer;
    try {
      showPlan(invocation, plan);
      await confirm(invocation, plan);
      const confirmHost = await askHost(invocation, target, planned.protected_host);
      const given = { ...action, options: { ...action.options, confirmHost } };
      made = await carryOut(api, given, planned.plan, sumIds(planned.record.ids));
    } catch (error) {
      await forgetPlan(api, planned, error);
      throw error;
    }
    const { run, context } = await readRecord(api, made.run);
    return sayDetached(invocation, run, context, readWarnings(made));
  });
}

/** Throws USAGE for options that have no effect if a server reads the list and its workers delete. */
function refuseUnsupportedOptions(invocation: Invocation): void {
  requireDetach(invocation);
  refuseProtectFile(invocation, {
    who: 'the server does',
    next: 'take those ids out of the list first, or do it where Redis can be reached, without --server',
  });
}

/** Throws USAGE without --detach, and for flags about sending and keeping. */
export function requireDetach(invocation: Invocation): void {
  if (invocation.options.detach !== true)
    throw new ExpungeError('USAGE', '--server requires --detach: workers of that server delete the ids', {
      next: 'add --detach, or do it where Redis can be reached, without --server',
    });
  refuseWorkerFlags(invocation);
  if (invocation.sources.keep === 'flag')
    throw new ExpungeError('USAGE', '--keep: the server decides how long it keeps a run');
}

/** The only list of a command, and its format. Throws USAGE for several. */
export async function openOneList({ args, config, stdin }: Invocation): Promise<{ file: InputFile; format: Format }> {
  const file = onlyFile(await openInputs(args, stdin));
  return { file, format: detectFormat(file, config.format ?? null) };
}

function onlyFile([file, ...others]: InputFile[]): InputFile {
  if (file !== undefined && others.length === 0) return file;
  throw new ExpungeError('USAGE', `a server takes one list at a time, got ${others.length + 1}`, {
    next: 'a command for each, or one file of all',
  });
}

/** Sends a list, of which the server makes a plan, and shows the progress. `query`: more fields of the plan. */
export async function sendOneList<T extends PlanAtServer = PlanAtServer>(
  invocation: Invocation,
  api: ApiClient,
  action: ListAction,
  sent: { target: Target; file: InputFile; format: Format; query?: Readonly<Record<string, string | undefined>> },
): Promise<T> {
  let bytes = 0;
  const text = () => `Sending ${sent.file.name}: ${(bytes / 1e6).toFixed(1)} MB`;
  const progress = startProgress(progressStream(invocation), invocation.env, text);
  const onBytes = (sent: number) => {
    bytes = sent;
  };
  return sendList<T>(api, action, { ...sent, onBytes }).finally(() => progress.stop());
}

/** The plan with the times that only this command knows. */
function planWithin(record: Plan, options: Invocation['options']): Plan {
  const { startAt = 0, stopAt = 0, maxDuration = 0 } = options;
  const limits = { startAt, stopAt, maxActiveMs: maxDuration };
  const work = { ...record.work, ...limits, startsAt: Math.max(record.work.startsAt, startAt) };
  return { ...record, ...limits, work, forecast: forecast(work, Date.now()) };
}

async function confirm(invocation: Invocation, plan: Plan): Promise<void> {
  const expected = sumIds(plan.ids);
  if (expected === 0 && invocation.options.confirm === undefined) return; // a failed export may be empty
  await askCount(invocation, expected, deletedText(plan));
}
