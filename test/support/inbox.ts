import { onTestFinished } from 'vitest';
import { addToken } from '../../src/api/token-store.ts';
import { type KeptPlan, readKeptPlan } from '../../src/ledger/kept-plans.ts';
import { noteTarget } from '../../src/ledger/known-targets.ts';
import type { Role } from '../../src/model/role.ts';
import { keys } from '../../src/redis/keys.ts';
import { type Api, openApi } from './api.ts';
import type { AtEnd } from './harness.ts';
import { annotations, makeIds } from './ids.ts';

export const inboxIds = makeIds('w', 6);

/** The people of these tests and their roles: ana plans, ben and carl can apply, dora is an admin, eve reads. */
const people = { ana: 'plan', ben: 'operate', carl: 'operate', dora: 'admin', eve: 'read' } as const satisfies Record<
  string,
  Role
>;

export type Name = keyof typeof people;

/** The result of an action: whether it was done, the code of the refusal, and all words. */
export type Result = { isDone: boolean; code: string; words: string };

/** One way to plan, approve and refuse. */
export type Way = {
  plan(who: Name, approveBy?: string): Promise<Result & { id: string }>;
  approve(who: Name, id: string): Promise<Result>;
  refuse(who: Name, id: string, reason: string): Promise<Result>;
  list(who: Name): Promise<string>;
};

const exits: Record<number, string> = { 2: 'usage', 4: 'guard', 5: 'credentials' };

/** A dashboard and people with tokens. Plans of old.csv hold six ids. `env`: of the server. */
export async function openInbox(env: NodeJS.ProcessEnv = {}, atEnd: AtEnd = onTestFinished) {
  const api = await openApi(atEnd, { objects: annotations(inboxIds), env });
  const { harness, redis, url } = api;
  await noteTarget(redis, harness.target, Date.now());
  harness.file('old.csv', `id\n${inboxIds.join('\n')}\n`);
  const tokens = new Map<Name, string>();
  for (const [name, role] of Object.entries(people) as [Name, Role][])
    tokens.set(name, await addToken(redis, { name, role, reach: null, at: 0, who: 'test', expiresAt: 0 }));
  const atServer = (who: Name) => ({
    EXPUNGE_SERVER: url,
    EXPUNGE_SERVER_TOKEN: tokens.get(who)!,
    REDIS_URL: 'redis://127.0.0.1:1',
    EXPUNGE_TOKEN: '',
    EXPUNGE_STATE_DIR: `${harness.folder}/none-${who}`,
  });
  const ways: Record<string, Way> = {
    'the command at Redis': overCommand(api, (who) => ({ EXPUNGE_USER: who })),
    'the command with --server': overCommand(api, atServer),
    'the API': overApi(api, tokens),
  };
  const kept = (id: string): Promise<KeptPlan | null> => readKeptPlan(redis, id);
  /** Makes a plan expire now. */
  const expire = async (id: string) => {
    const plan = (await kept(id))!;
    await redis.hset(keys.plans(harness.target.fp), id, JSON.stringify({ ...plan, expiresAt: 1 }));
  };
  return { ...api, ways, tokens, atServer, kept, expire, sent: () => harness.sandbox.seen.length };
}

export const wayNames = ['the command at Redis', 'the command with --server', 'the API'];

function overCommand({ harness }: Api, envOf: (who: Name) => NodeJS.ProcessEnv): Way {
  const run = async (who: Name, args: string[]) => {
    const { code, stdout, stderr } = await harness.expunge(args, { env: envOf(who) });
    return { isDone: code === 0, code: exits[code ?? 0] ?? '', words: stdout + stderr };
  };
  return {
    async plan(who, approveBy) {
      const more = approveBy === undefined ? [] : ['--approve-by', approveBy];
      const result = await run(who, ['plan', 'old.csv', '--resource', 'annotations', '--reason', 'OPS-77', ...more]);
      return { ...result, id: /Plan (\S+) waits/.exec(result.words)?.[1] ?? '' };
    },
    approve: (who, id) => run(who, ['apply', id, '--confirm', '6', '--reason', 'agreed', '--detach']),
    refuse: (who, id, reason) => run(who, ['plans', 'refuse', id, '--reason', reason]),
    list: async (who) => (await run(who, ['plans'])).words,
  };
}

function overApi({ harness, call }: Api, tokens: ReadonlyMap<Name, string>): Way {
  const send = async (who: Name, path: string, options: Parameters<Api['call']>[2] = {}) => {
    const headers = { ...options.headers, authorization: `Bearer ${tokens.get(who)}` };
    const answer = await call(null, path, { ...options, headers });
    const { status, text, body } = answer;
    return { isDone: status < 300, code: status < 300 ? '' : body.code, words: text, body };
  };
  return {
    async plan(who, approveBy) {
      const by = approveBy === undefined ? { wait: 'true' } : { approve_by: approveBy };
      const more = new URLSearchParams({ resource: 'annotations', reason: 'OPS-77', name: 'old', ...by });
      const raw = `id\n${inboxIds.join('\n')}\n`;
      const options = { method: 'POST', raw, headers: { 'content-type': 'text/csv' } };
      const result = await send(who, `/plans?target=${harness.target.fp}&${more}`, options);
      return { ...result, id: result.body.plan ?? '' };
    },
    approve: (who, id) =>
      send(who, `/plans/${id}/apply`, { method: 'POST', body: { confirm: inboxIds.length, reason: 'agreed' } }),
    refuse: (who, id, reason) => send(who, `/plans/${id}/refuse`, { method: 'POST', body: { reason } }),
    list: async (who) => (await send(who, '/plans')).words,
  };
}
