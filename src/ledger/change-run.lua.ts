/**
 * Changes what bounds a run or what it gets, in any state that isn't sealed. Repeating it changes nothing more; only the audit trail
 * tells of both.
 *
 * KEYS  1 run  2 audit
 * ARGV  1 audit entry  then pairs: field, value ('keep' = as it is)
 * returns {state or 'missing', what each field held before, '' for nothing}
 */
export const changeRunLua = `
local run = redis.call('HMGET', KEYS[1], 'state', 'sealed')
local before = {run[1] or 'missing'}
for i = 2, #ARGV, 2 do before[#before + 1] = redis.call('HGET', KEYS[1], ARGV[i]) or '' end
if not run[1] or run[2] then return before end
for i = 2, #ARGV, 2 do
  if ARGV[i + 1] ~= 'keep' then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
redis.call('LPUSH', KEYS[2], ARGV[1])
redis.call('LTRIM', KEYS[2], 0, 99)
return before
`;
