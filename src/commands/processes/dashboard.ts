import { once } from 'node:events';
import { pageOfRuns } from '../../ledger/list-runs.ts';
import { createLogger } from '../../logger.ts';
import type { ToType } from '../../model/to-type.ts';
import { type EarlySession, withRedis } from '../../operations/session.ts';
import { Parts } from '../../worker/parts.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { listenForInterrupts } from '../interrupts.ts';
import { infoWriter, whoAmI } from '../session.ts';

const defaultPort = 9465;

/**
 * Serves the dashboard and the API on this machine until a signal. It deletes nothing itself, and needs no access token. Like `run`, it may start a
 * private Redis, because the first run is often made in such a folder.
 */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, sources, env, options, stdout, stderr, verbosity } = invocation;
  const log = createLogger({ level: verbosity === 'verbose' ? 'debug' : 'warn', format: config.logFormat, stderr });
  const serve = async (session: EarlySession) => {
    const { openDashboardSite } = await import('../../api/site.ts');
    const { httpPart } = await import('../../worker/http/http-part.ts');
    const { app, newLink } = openDashboardSite({ session, config, sources, env, log, workerOf: null });
    const hasNoRuns = (await pageOfRuns(session.redis, { sort: 'created', limit: 1 }, null)).runs.length === 0;
    const interrupts = listenForInterrupts(invocation, () => {});
    const address = { host: '127.0.0.1', port: options.port ?? defaultPort };
    const onListening = (url: string) => {
      const link = url + newLink(whoAmI(env));
      if (options.json) jsonLines(stdout, true)('dashboard', { url, login: link });
      else stdout.write(`${link}\n`);
      infoWriter(invocation)(
        'Open this link: it logs you in as admin, once and within ten minutes. Ctrl-C ends the dashboard.',
      );
      if (hasNoRuns) infoWriter(invocation)(firstSteps(invocation.toType));
    };
    const { oldListsPart } = await import('../../api/uploads.ts');
    const parts = new Parts(
      [httpPart(address, app, { flag: '--port', onListening }), oldListsPart(config.stateDir, log)],
      log,
    );
    try {
      await parts.start(interrupts.signal);
      if (!interrupts.signal.aborted) await once(interrupts.signal, 'abort');
    } finally {
      await parts.drain();
      interrupts.dispose();
    }
    return 0;
  };
  return withRedis(invocation, infoWriter(invocation), serve, true);
}

const firstSteps = (
  toType: ToType,
) => `There are no runs yet in this Redis. Make the first one in another terminal, and leave it to workers:
  ${toType('run', 'ids.csv', '--detach')}
If you expected some: start the dashboard in the folder they were made in, name its state folder with --state-dir, or set REDIS_URL.`;
