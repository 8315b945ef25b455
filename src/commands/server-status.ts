import { withServer } from '../api/client.ts';
import { readRecord, unlessAway } from '../api/remote-runs.ts';
import { readTargetRecord, refuseUnknownTarget } from '../api/remote-targets.ts';
import { namedTarget } from '../config/check-target.ts';
import type { Invocation } from './command.ts';
import { sayUnlessJson } from './session.ts';
import { refuseHistoryAsText, refuseUnlessTarget, showRun } from './status.ts';
import { showTarget } from './target-status.ts';

const pollMs = 1_000;

/** `status RUN` by the API of a server. */
export async function execute(invocation: Invocation): Promise<number> {
  const { args, config } = invocation;
  refuseHistoryAsText(invocation);
  if (args.length === 0) refuseUnlessTarget(invocation);
  return withServer(invocation, sayUnlessJson(invocation), async (api) => {
    if (args.length === 0) {
      const target = namedTarget(config);
      await refuseUnknownTarget(api, target);
      return showTarget(invocation, await readTargetRecord(api, target), []);
    }
    const { run } = await readRecord(api, args[0]);
    return showRun(invocation, run, {
      pollMs,
      away: `${api.url} does not answer, so what the run does is not known`,
      look: async () => (await readRecord(api, run.id).catch(unlessAway)) ?? { run: undefined, context: undefined },
      record: () => readRecord(api, run.id),
      history: () => api.json({ method: 'GET', path: `/runs/${run.id}/history` }),
    });
  });
}
