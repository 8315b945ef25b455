import { keys } from '../redis/keys.ts';
import { writeTimesFunction } from './cell.ts';
import { failuresAfter } from './halt-rules.ts';
import type { KnownUpdate } from './known-cells.ts';
import { isEarlyFunction } from './start-time.lua.ts';

/**
 * An update whose holder knows every cell of it: one comparison, and the bytes that follow. It does nothing if another process has written, if the
 * run is not running or ends with this update, or if a share of failures counts from this update on. In all these cases the script of update.lua.ts
 * decides. So running it twice is harmless. With the last id of a chunk it also returns the chunk, as returnChunkLua does, which is then not needed.
 *
 * KEYS  1 ledger chunk  2 run  3 open
 * ARGV  1 chunk  2 epoch  3 offset  4 bytes before  5 bytes after  6 ids deleted  7 attempts  8 places of times, 2 bytes each
 *       9 1 = every id of the chunk is settled then: it is returned
 * returns 1, or 0 if it did nothing
 */
export const knownUpdateLua = `${writeTimesFunction}${isEarlyFunction}
local run = redis.call('HMGET', KEYS[2], 'state', 'ids', 'settled', 'settledAtStart', 'startsAt')
local deleted = tonumber(ARGV[6])
if run[1] ~= 'running' or isEarly(run[5]) or redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return 0 end
if deleted > 0 then
  local settled = tonumber(run[3])
  local since = settled - tonumber(run[4] or '0')
  if settled + deleted >= tonumber(run[2]) or since < ${failuresAfter} and since + deleted >= ${failuresAfter} then return 0 end
end
if redis.call('GETRANGE', KEYS[1], ARGV[3], ARGV[3] + #ARGV[4] - 1) ~= ARGV[4] then return 0 end
redis.call('SETRANGE', KEYS[1], ARGV[3], ARGV[5])
if deleted > 0 then
  redis.call('HINCRBY', KEYS[2], 'deleted', deleted)
  redis.call('HINCRBY', KEYS[2], 'settled', deleted)
end
if ARGV[7] ~= '0' then redis.call('HINCRBY', KEYS[2], 'attempts', ARGV[7]) end
if ARGV[8] ~= '' then
  local noted = {}
  for at = 1, #ARGV[8], 2 do
    local a, b = string.byte(ARGV[8], at, at + 1)
    noted[a * 256 + b] = true
  end
  writeTimes(KEYS[1], noted)
end
if ARGV[9] == '1' then redis.call('HDEL', KEYS[3], ARGV[1]) end
return 1
`;

export function knownUpdateArguments(
  run: string,
  chunk: number,
  epoch: number,
  { offset, before, after, deleted, attempts, places, returnsChunk }: KnownUpdate,
): (string | number | Buffer)[] {
  const all = [keys.ledger(run, chunk), keys.run(run), keys.open(run)];
  return [...all, chunk, epoch, offset, before, after, deleted, attempts, places, returnsChunk ? 1 : 0];
}
