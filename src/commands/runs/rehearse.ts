import { readTarget } from '../../config/check-target.ts';
import { type SettingName, settings } from '../../config/settings.ts';
import { ExpungeError } from '../../errors.ts';
import { count } from '../../format.ts';
import { readChunks } from '../../input/chunk-ids.ts';
import { type List, makeStateDir } from '../../input/with-list.ts';
import { rehearsalMark, rehearsalText } from '../../model/rehearsal.ts';
import { sumIds } from '../../model/resource.ts';
import { type Target, targetOf } from '../../model/target.ts';
import type { ListAction } from '../../operations/list-action.ts';
import { checkList, checkUnseen, makeListPlan, noListHistory } from '../../operations/plan-list.ts';
import { withRedis } from '../../operations/session.ts';
import { findList } from '../../operations/start-list.ts';
import { withThrowawayState } from '../../redis/private/throwaway.ts';
import { rehearsalFolder } from '../../report/file-retention.ts';
import type { SandboxObject } from '../../sandbox/objects.ts';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { forecastFacts, forecastText } from '../../terminal/forecast-text.ts';
import { deletedText, type Plan } from '../../terminal/plan-text.ts';
import { fixedToken } from '../../token/fixed-token.ts';
import { type Invocation, jsonLines, notifying, server, store, target as targetSettings } from '../command.ts';
import { listenForInterrupts } from '../interrupts.ts';
import { readFaults } from '../processes/sandbox.ts';
import { askCount, infoWriter, toListAction } from '../session.ts';
import { deleteInForeground } from './delete-in-foreground.ts';
import { submit } from './run-list.ts';
import { showPlan } from './show-plan.ts';

/** Reads the list of a command and calls `body`. */
type ReadList = (invocation: Invocation, body: (list: List) => Promise<number>) => Promise<number>;

/**
 * `run --rehearse`: takes the list through everything that `run` does, against a sandbox in this process that holds its ids, with a state folder and
 * a private Redis that are removed afterwards. Sends nothing to the base URL, and reads no token. Only its report stays. Returns the exit code that
 * the run would have.
 */
export async function rehearse(given: Invocation, readList: ReadList): Promise<number> {
  refuseBeside(given);
  const faults = readFaults({ faults: given.options.faults });
  const action = toListAction(given);
  const target = readTarget(given.config, given.env);
  await makeStateDir(given.config.stateDir); // its report, the only copy, is written last
  return withThrowawayState((stateDir, remove) =>
    endingEarly(given, remove, (isDeleting) =>
      readList(apart(given, stateDir), async (list) => {
        checkList(action, list.spool);
        checkUnseen(action, list.spool);
        refuseTooMany(list);
        const { pathname } = new URL(target.baseUrl);
        const basePath = pathname.replace(/\/$/, '');
        const sandbox = await startSandbox({ faults, basePath, objects: objectsIn(list) });
        try {
          return await deleteFrom(sandbox, given, { stateDir, action, target, list, isDeleting });
        } finally {
          await sandbox.close();
        }
      }),
    ),
  );
}

type Rehearsal = { stateDir: string; action: ListAction; target: Target; list: List; isDeleting: () => void };

/** Shows the plan of the real run, then deletes the list from the sandbox. */
async function deleteFrom(sandbox: Sandbox, given: Invocation, work: Rehearsal): Promise<number> {
  const { action, target, list } = work;
  const here = apart(given, work.stateDir);
  const say = infoWriter(given);
  const plan: Plan = { ...makeListPlan(action, target, list, noListHistory), rejectsFile: null };
  introduce(given, plan);
  await askCount({ ...here, options: { ...here.options, yes: true } }, sumIds(plan.ids), deletedText(plan)); // nothing is deleted, so only a wrong --confirm matters
  const rehearsed = {
    ...action,
    config: here.config,
    options: here.options,
    env: here.env,
    rehearsalOf: target.baseUrl,
  };
  const listWork = { target: targetOf(sandbox.url, target.account), list, retries: null, applied: null };
  const exit = await withRedis(
    here,
    say,
    async (session) => {
      const known = await findList(session, rehearsed, listWork);
      if (known.ended !== null) throw new Error('a new Redis holds a run');
      const run = await submit(here, session, known, listWork);
      const credentials = { token: fixedToken(sandbox.token, 'the rehearsal'), ca: null, identity: null };
      const outputFolder = rehearsalFolder(given.config.stateDir, run.id);
      const deletion = { session, target: listWork.target, credentials, receivers: [], run, outputFolder };
      work.isDeleting();
      return deleteInForeground({ ...deletion, invocation: here });
    },
    true,
  );
  say(`  Forecast of the run: ${forecastText(plan.forecast)}`);
  return exit;
}

/**
 * Calls `body`. Until `body` says that it is deleting, which handles signals itself, a signal removes everything and ends the process: its Redis would
 * outlive it.
 */
async function endingEarly<T>(
  given: Invocation,
  remove: () => Promise<void>,
  body: (isDeleting: () => void) => Promise<T>,
): Promise<T> {
  const interrupts = listenForInterrupts(given, () => {
    void remove().finally(() => given.signals.exit(interrupts.exit()!));
  });
  try {
    return await body(() => interrupts.dispose());
  } finally {
    interrupts.dispose();
  }
}

function introduce(given: Invocation, plan: Plan): void {
  const { faults } = given.options;
  infoWriter(given)(`${rehearsalMark} of ${plan.baseUrl}: ${rehearsalText(plan.baseUrl)}.`);
  infoWriter(given)(`${rehearsalMark} with ${faults || 'no faults: every id exists, and each delete succeeds'}.`);
  showPlan(given, plan);
  const expected = forecastFacts(plan.forecast);
  const facts = { rehearsal: true, base_url: plan.baseUrl, faults: faults || null, expected };
  jsonLines(given.stdout, given.options.json)('rehearsal', facts);
}

/**
 * The settings that lead out of a rehearsal (to the API and its token, to receivers of events, to a server or a Redis), that bind the target, or that
 * would only let it wait.
 */
const unused: readonly SettingName[] = [
  ...targetSettings.filter((name) => name !== 'account'),
  ...notifying,
  ...server,
  ...store,
  'allowedTargets',
  'protectedTargets',
  'grace',
  'window',
];

/** The invocation without these settings, and with the state folder of the rehearsal. */
function apart(given: Invocation, stateDir: string): Invocation {
  const fallbacks = Object.fromEntries(unused.map((name) => [name, settings[name].fallback]));
  const options = { ...given.options, startAt: 0 };
  return {
    ...given,
    options,
    config: { ...given.config, ...fallbacks, stateDir },
    env: { ...given.env, REDIS_URL: undefined },
  };
}

function* objectsIn({ spool }: List): Generator<SandboxObject> {
  for (const part of readChunks(spool)) {
    if (!('ids' in part)) continue;
    for (const id of part.ids) yield { resource: part.resource, id };
  }
}

/** The maximum number of ids: the sandbox holds them in memory. */
const maxIds = 2_000_000; // a million take 430 MB

function refuseTooMany({ spool }: List): void {
  const ids = sumIds(spool.ids);
  if (ids <= maxIds) return;
  throw new ExpungeError('USAGE', `a rehearsal takes at most ${count(maxIds)} ids, and the list has ${count(ids)}`, {
    next: `rehearse a part of it: --limit ${maxIds}`,
  });
}

/** Throws USAGE for options that exclude a rehearsal. */
function refuseBeside({ options }: Invocation): void {
  if (options.dryRun) throw new ExpungeError('USAGE', '--rehearse and --dry-run exclude each other');
  if (options.detach)
    throw new ExpungeError('USAGE', '--rehearse: this command itself deletes from the sandbox, and no worker does', {
      next: 'omit --detach',
    });
}
