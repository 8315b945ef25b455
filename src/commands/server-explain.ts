import { withServer } from '../api/client.ts';
import { refuseUnknownTarget } from '../api/remote-targets.ts';
import { namedTarget } from '../config/check-target.ts';
import { exitCodes } from '../errors.ts';
import { type Appearance, noRunHas, type Search } from '../operations/search-runs.ts';
import type { Invocation } from './command.ts';
import { readWanted, showAppearance } from './explain.ts';
import { sayUnlessJson, warnOn } from './session.ts';

type Found = { items: Appearance[]; searched: Search['searched']; warnings: string[] };

/** `explain` by the API of a server. */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, stderr } = invocation;
  const wanted = readWanted(invocation);
  const target = namedTarget(config);
  return withServer(invocation, sayUnlessJson(invocation), async (api) => {
    await refuseUnknownTarget(api, target);
    const request = { method: 'GET', path: `/targets/${target.fp}/found`, query: wanted, isLong: true } as const;
    const { items, searched, warnings } = await api.json<Found>(request);
    warnOn(stderr, warnings);
    for (const appearance of items) showAppearance(invocation, appearance);
    if (items.length === 0) throw noRunHas({ target, wanted, searched });
    return exitCodes.OK.exit;
  });
}
