import { once } from 'node:events';
import { createLogger } from '../logger.ts';
import { Parts } from '../worker/parts.ts';
import { type Invocation, jsonLines } from './command.ts';
import { listenForInterrupts } from './interrupts.ts';
import { sayOf, whoAmI, withRedis } from './session.ts';

const defaultPort = 9465;

/** Serves the dashboard and the API on this machine until a signal. It deletes nothing itself, and needs no access token. */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, sources, env, options, stdout, stderr, verbosity } = invocation;
  const log = createLogger(verbosity === 'verbose' ? 'debug' : 'warn', stderr);
  return withRedis(invocation, sayOf(invocation), async (session) => {
    const { openDashboardSite } = await import('../api/site.ts');
    const { httpPart } = await import('../worker/http/http-part.ts');
    const { app, newLink, close } = openDashboardSite({ session, config, sources, env, log });
    const interrupts = listenForInterrupts(invocation, () => {});
    const address = { host: '127.0.0.1', port: (options.port as number | undefined) ?? defaultPort };
    const onListening = (url: string) => {
      const link = url + newLink(whoAmI(env));
      if (options.json) jsonLines(stdout, true)('dashboard', { url, login: link });
      else stdout.write(`${link}\n`);
      sayOf(invocation)(
        'Open this link: it logs you in as admin, once and within ten minutes. Ctrl-C ends the dashboard.',
      );
    };
    const parts = new Parts([httpPart(address, app, { flag: '--port', onListening })], log);
    try {
      await parts.start(interrupts.signal);
      if (!interrupts.signal.aborted) await once(interrupts.signal, 'abort');
    } finally {
      await parts.drain();
      await close().catch(() => {}); // Redis may be away; they expire by themselves
      interrupts.dispose();
    }
    return 0;
  });
}
