import { z } from 'zod';
import { namePattern, nameRule } from '../config/list-source.ts';
import { auditFacts } from '../ledger/audit.ts';
import { roles } from '../model/role.ts';
import { Problem } from './problem.ts';
import { type Route, route } from './route.ts';
import * as shapes from './shapes.ts';
import { findKnownTarget } from './targets.ts';
import { addToken, listTokens, readTokenAudit, revokeToken, tokenFacts } from './token-store.ts';

const maxDays = 3_650;
const maxTargets = 100;

/** Routes for who may use the API. */
export const tokenRoutes: readonly Route[] = [
  route({
    method: 'get',
    path: '/tokens',
    role: 'admin',
    summary: 'the names of all tokens, and who made and revoked some',
    answer: shapes.tokens,
    handle: async ({ deps: { session } }) => {
      const [all, audit] = await Promise.all([listTokens(session.redis), readTokenAudit(session.redis)]);
      return { items: all.map(tokenFacts), audit: audit.map(auditFacts) };
    },
  }),
  route({
    method: 'post',
    path: '/tokens',
    role: 'admin',
    summary: 'make a token; only this answer contains it',
    body: z.strictObject({
      name: z.string().regex(namePattern, `expected a name of ${nameRule}`),
      role: z.enum(roles),
      targets: z
        .array(z.string().length(16))
        .min(1)
        .max(maxTargets)
        .optional()
        .describe('fingerprints of all that it may see and steer; every target'),
      expires_days: z.int().min(1).max(maxDays).optional(),
    }),
    answer: shapes.token.extend({ token: z.string() }),
    status: 201,
    handle: async ({ deps, caller, body: { name, role, targets, expires_days: days = 0 } }) => {
      const at = Date.now();
      const reach =
        targets === undefined ? null : await Promise.all(targets.map((fp) => findKnownTarget(deps.session, fp)));
      const made = { name, role, reach, at, who: caller.name, expiresAt: days > 0 ? at + days * 86_400_000 : 0 };
      const token = await addToken(deps.session.redis, made);
      deps.log.info({ name, role, who: caller.name }, 'a token was made');
      return { ...tokenFacts(made), token };
    },
  }),
  route({
    method: 'delete',
    path: '/tokens/{name}',
    role: 'admin',
    summary: 'revoke a token',
    answer: z.object({ name: z.string(), revoked: z.boolean() }),
    handle: async ({ deps, caller, params }) => {
      const name = params.name!;
      if (!(await revokeToken(deps.session.redis, name, caller.name, Date.now())))
        throw new Problem('not_found', 'no token has this name');
      deps.log.info({ name, who: caller.name }, 'a token was revoked');
      return { name, revoked: true };
    },
  }),
];
