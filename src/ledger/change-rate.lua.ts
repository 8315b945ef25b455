import { noteAuditLua } from './audit.ts';

/**
 * Gives a run another rate, in any state that isn't sealed. Repeating it changes nothing more; only the audit trail tells of both.
 *
 * KEYS  1 run  2 audit
 * ARGV  1 stored rate, '' = none, 'keep' = as it is  2 burst, '' = the default, 'keep' = as it is  3 audit entry
 * returns {state or 'missing', stored rate before, burst before}
 */
export const changeRateLua = `
local run = redis.call('HMGET', KEYS[1], 'state', 'sealed', 'rate', 'burst')
if not run[1] then return {'missing', '', ''} end
local before = {run[1], run[3] or '', run[4] or ''}
if run[2] then return before end
if ARGV[1] ~= 'keep' then redis.call('HSET', KEYS[1], 'rate', ARGV[1]) end
if ARGV[2] ~= 'keep' then redis.call('HSET', KEYS[1], 'burst', ARGV[2]) end
${noteAuditLua('KEYS[2]', 'ARGV[3]')}
return before
`;
