import { readTarget } from '../config/check-target.ts';
import { settings } from '../config/settings.ts';
import { ExpungeError } from '../errors.ts';
import { checkMaxDeletes } from './check-max-deletes.ts';
import type { Invocation } from './command.ts';
import { showDryRun } from './dry-run.ts';
import { nothingKnown, planOf } from './plan-of.ts';
import { withNamedList } from './read-list.ts';
import { readCredentials } from './service-options.ts';
import { sending } from './shared-options.ts';

/** Plan, confirm, delete, report. The same command again resumes. */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, env, options } = invocation;
  if (options.detach) refuseOfWorkers(invocation);
  const target = readTarget(config, env);
  const credentials = options.dryRun ? null : readCredentials(invocation);
  return withNamedList(invocation, async (list) => {
    checkMaxDeletes(list.spool.ids, config.maxDeletes);
    // An export that went wrong looks like this; a purge that found nothing does too, so it is no mistake.
    if (list.spool.rows === 0) invocation.stderr.write('warning: the list is empty: 0 rows\n');
    if (credentials === null) return showDryRun(invocation, list, planOf(invocation, target, list, nothingKnown));
    const { runList } = await import('./run-list.ts'); // what comes up to here needs none of it, and answers sooner
    return runList(invocation, { target, credentials, list });
  });
}

/** How requests are sent is up to the workers that send them. Variables and files may be meant for a worker beside this command. */
function refuseOfWorkers({ sources }: Invocation): void {
  const flags = [...sending, 'caFile' as const, 'proxy' as const].filter((name) => sources[name] === 'flag');
  if (flags.length === 0) return;
  const names = flags.map((name) => `--${settings[name].flag}`).join(', ');
  throw new ExpungeError(
    'USAGE',
    `${names}: with --detach workers send the requests, and each goes by its own settings`,
    {
      next: `leave it away here, and give it to them: expunge worker ${names.replaceAll(',', '')} …`,
    },
  );
}
