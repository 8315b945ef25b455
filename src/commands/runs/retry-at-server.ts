import { withServer } from '../../api/client.ts';
import { type RowGroup, readChosen, readProtectedHost, retryRun } from '../../api/remote-lists.ts';
import { readRecord } from '../../api/remote-runs.ts';
import { readWarnings } from '../../api/warnings.ts';
import { type SettingName, settings } from '../../config/settings.ts';
import { ExpungeError } from '../../errors.ts';
import { count, plural } from '../../format.ts';
import type { Run } from '../../ledger/run.ts';
import { worthRetry } from '../../model/selection.ts';
import { ofRuns } from '../../operations/list-settings.ts';
import { requireEndedForRetry } from '../../operations/retried-run.ts';
import { targetOfRun } from '../../operations/retry-list.ts';
import { type Invocation, protectReading, retryInput } from '../command.ts';
import { askCount, askHost, infoWriter, toListAction } from '../session.ts';
import { sayDetached } from './finish-run.ts';
import { sayNothing } from './retry.ts';
import { requireDetach } from './send-list.ts';

/**
 * `retry --detach` through the API of a server: the new run has the rules of the old one. Throws GUARD and names the run if these ids already have
 * one.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, config, options } = invocation;
  requireDetach(invocation);
  refuseUnsupportedOptions(invocation);
  const only = options.only ?? worthRetry;
  const action = toListAction(invocation);
  return withServer(invocation, infoWriter(invocation), async (api) => {
    const { run } = await readRecord(api, args[0]);
    requireEndedForRetry(run);
    if (config.baseUrl !== undefined) targetOfRun(invocation, run);
    const chosen = await readChosen(api, run, only);
    if (chosen.length === 0) return sayNothing(invocation, run, only);
    const expected = await confirm(invocation, run, chosen);
    const confirmHost = await askHost(invocation, run, await readProtectedHost(api, run));
    const given = { ...action, options: { ...action.options, confirmHost } };
    const made = await retryRun(api, given, { run, only: options.only, expected });
    const { run: retry, context } = await readRecord(api, made.run);
    return sayDetached(invocation, retry, context, readWarnings(made));
  });
}

/** Throws USAGE for options that the API does not take. */
function refuseUnsupportedOptions({ options, sources }: Invocation): void {
  // Settings about reading a file do nothing without the file.
  const isSaid = (name: SettingName) => sources[name] === 'flag' || !isOfFile(name);
  const unsent = [...retryInput, ...ofRuns].filter((name) => name !== 'grace');
  const names = unsent.filter((name) => sources[name] !== 'default' && isSaid(name));
  const others = [
    ...(options.partial ? ['partial'] : []),
    ...(options.stopAt ? ['stop-at'] : []),
    ...(options.maxDuration ? ['max-duration'] : []),
  ];
  const flags = [...names.map((name) => settings[name].flag), ...others].map((flag) => `--${flag}`);
  if (options.dryRun) flags.unshift('--dry-run');
  if (flags.length === 0) return;
  throw new ExpungeError('USAGE', `${flags.join(', ')}: a server retries ids by the rules of their run`, {
    next: 'omit it here, or do it where Redis can be reached, without --server',
  });
}

const isOfFile = (name: SettingName) => (protectReading as readonly string[]).includes(name);

/** Asks for the number of ids that are sent again, and returns it. Throws USAGE if it is not confirmed. */
async function confirm(invocation: Invocation, run: Run, chosen: readonly RowGroup[]): Promise<number> {
  const expected = chosen.reduce((sum, group) => sum + group.count, 0);
  const groups = chosen.map((group) => `${count(group.count)} ${group.outcome} (${group.code})`).join(', ');
  const what = `${plural(expected, 'ids')} of run ${run.id} again on ${new URL(run.baseUrl).host}: ${groups}`;
  await askCount(invocation, expected, what);
  return expected;
}
