import { ExpungeError } from '../errors.ts';
import { isSamePerson } from '../model/person.ts';
import type { RedisClient } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';
import { type AuditEntry, noteAuditOfRunLua, noteLoosenedFunction, storedEntry } from './audit.ts';
import { revisionFunctions } from './changes.lua.ts';
import { changeMaxDeletes } from './max-deletes.ts';
import { isFinalized, type Run, readRunAgain } from './run.ts';
import { findRule, isSameRule, type RuleName, type RunRules, ruleText } from './run-rules.ts';
import { startTimeFunctions } from './start-time.lua.ts';

/** Who changes rules, when and why. */
export type RuleAction = Pick<AuditEntry, 'at' | 'by' | 'who' | 'reason'>;

/** One rule that becomes another. `isLoosened`: the run belongs to a plan, and no longer has the rule that was approved. */
type RuleChange = { name: RuleName; from: string; to: string; value: unknown; isLoosened: boolean };

const attemptsMax = 5;

/**
 * Gives an unfinished run these rules, and records each change in its audit trail: who made it, and the old and new value. A run of a plan also
 * records which rules were loosened. Rules that the run has already are left alone, so repeating it changes nothing. A run that has ended is not
 * changed. Throws GUARD, and changes nothing, if anyone but the plan's approver loosens a rule. Throws USAGE if `--max-deletes` is set to fewer ids
 * than may have been sent already. Returns the run as it is then.
 */
export async function changeRules(
  redis: RedisClient,
  seen: Run,
  wanted: Partial<RunRules>,
  action: RuleAction,
): Promise<Run> {
  let run = seen;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const changes = isFinalized(run.state) ? [] : changesOf(run, wanted);
    if (changes.length === 0) return run;
    refuseLoosening(run, changes, action.who);
    // The chunk up to which a run sends depends on the sizes of its chunks, so this rule has its own script. That script can refuse, so it comes
    // first.
    const most = changes.find(({ name }) => name === 'maxDeletes');
    if (most !== undefined) {
      await changeMaxDeletes(redis, run, wanted.maxDeletes ?? null, entryOf(most, action), noteOf(most, action));
    }
    const others = changes.filter(({ name }) => name !== 'maxDeletes');
    const isDone = others.length === 0 || (await write(redis, run, others, action));
    run = await readRunAgain(redis, run.id);
    if (isDone) return run;
  }
  throw new ExpungeError('GUARD', `the rules of run ${seen.id} are being changed by others`, {
    next: (toType) => `see its status: ${toType('status', seen.id, '--audit')}`,
  });
}

function changesOf(run: Run, wanted: Partial<RunRules>): RuleChange[] {
  const after: RunRules = { ...run, ...wanted };
  const names = (Object.keys(wanted) as RuleName[]).filter((name) => !isSameRule(name, run, after));
  return names.map((name) => {
    const { plan, isLooser } = findRule(name);
    const isLoosened = run.plan !== '' && plan !== 'free' && isLooser(run[name], after[name]);
    return { name, from: ruleText(run, name), to: ruleText(after, name), value: after[name], isLoosened };
  });
}

function refuseLoosening({ id, approver }: Run, changes: readonly RuleChange[], who: string): void {
  const loosened = changes.filter(({ isLoosened }) => isLoosened);
  if (loosened.length === 0 || approver === '' || isSamePerson(approver, who)) return;
  const rules = loosened.map(({ name, from, to }) => `--${findRule(name).flag} ${from} to ${to}`).join(', ');
  throw new ExpungeError(
    'GUARD',
    `run ${id} carries out a plan that ${approver} approved: only ${approver} may loosen ${rules}; nothing was changed`,
    { next: `let ${approver} do it, under a login or an EXPUNGE_USER of that name` },
  );
}

function entryOf({ name, from, to }: RuleChange, action: RuleAction): AuditEntry {
  const { at, by, who, reason } = action;
  return { at, action: findRule(name).flag, by, who, reason, from, to };
}

/** The note in the record of a plan's run about a change; '' = none. */
function noteOf({ name, from, to, isLoosened }: RuleChange, { who }: RuleAction): string {
  return isLoosened ? `${findRule(name).flag} ${from} to ${to} by ${who}` : '';
}

/** Returns false, and changes nothing, if a rule or the plan of the run is no longer what the caller saw. */
async function write(
  redis: RedisClient,
  run: Run,
  changes: readonly RuleChange[],
  action: RuleAction,
): Promise<boolean> {
  const lines = changes.flatMap((change) => {
    const { name, value } = change;
    const { stored, isAbsentWhenUnset, unset } = findRule(name);
    const seen = (name === 'rate' && run.unreadRate) || stored(run[name]);
    const isGone = isAbsentWhenUnset === true && stored(value) === stored(unset);
    const fields = [name, stored(unset), seen, isGone ? 'HDEL' : 'HSET', stored(value)];
    return [...fields, noteOf(change, action), storedEntry(entryOf(change, action))];
  });
  const also = changes.flatMap(({ name }) => Object.entries(findRule(name).with ?? {}).flat());
  const all = [keys.run(run.id), keys.audit(run.id)];
  const answer = await redis.eval(changeRulesLua, 2, ...all, run.plan, changes.length, ...lines, ...also);
  return answer === 1;
}

// KEYS 1 run  2 audit  ARGV 1 plan that was seen  2 number of changes  then for each: field, its value if it is missing, value that was seen,
// HSET or HDEL, new value, note, audit entry; then further fields and values
const changeRulesLua = `${noteLoosenedFunction}${revisionFunctions}${startTimeFunctions}
local run = redis.call('HMGET', KEYS[1], 'state', 'finalized', 'plan')
if not run[1] or run[2] then return 1 end
if (run[3] or '') ~= ARGV[1] then return 0 end
local last = 2 + 7 * tonumber(ARGV[2])
for i = 3, last, 7 do
  if (redis.call('HGET', KEYS[1], ARGV[i]) or ARGV[i + 1]) ~= ARGV[i + 2] then return 0 end
end
for i = 3, last, 7 do
  if ARGV[i + 3] == 'HDEL' then redis.call('HDEL', KEYS[1], ARGV[i]) else redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 4]) end
  noteLoosened(KEYS[1], ARGV[i + 5])
  ${noteAuditOfRunLua('ARGV[i + 6]')}
end
for i = last + 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
setStart(KEYS[1])
noteEdit(KEYS[1])
return 1
`;
