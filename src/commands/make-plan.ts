import { readTarget } from '../config/check-target.ts';
import { ExpungeError } from '../errors.ts';
import { isoTime } from '../format.ts';
import { openInputs } from '../input/open-inputs.ts';
import type { List } from '../input/with-list.ts';
import { isSamePerson } from '../model/person.ts';
import { quoteForShell } from '../model/shell-word.ts';
import { type Plan, planText } from '../terminal/plan-text.ts';
import { styleOf } from '../terminal/style.ts';
import { type Invocation, jsonLines, reasonOf } from './command.ts';
import { checkList, type ListHistory, noListHistory, planOf } from './plan.ts';
import { writePlanFile } from './plan-file.ts';
import { withNamedList } from './run.ts';
import { type PlanOrigin, planCode, type SealedInput, type SealedPlan, sealInputs, sealPlan } from './sealed-plan.ts';
import { refuseLoneBurst, sayOf, sayOn, whoAmI } from './session.ts';

/** `plan`: reads the list as `run` would, and seals in a file what `apply` may do. Sends nothing; needs neither a token nor Redis. */
export async function execute(invocation: Invocation): Promise<number> {
  const { stderr } = invocation;
  const output = outputOf(invocation);
  const { plan, sha256, shown } = await makePlan(invocation, output);
  stderr.write(`${planText(shown, styleOf(stderr), stderr.columns || undefined)}\n`);
  tell(invocation, output, { plan, sha256, shown });
  return 0;
}

type Parts = { origin?: PlanOrigin; historyOf?: (list: List) => Promise<ListHistory> };

/** A sealed plan, its hash, and what is shown of it. */
type Made = { plan: SealedPlan; sha256: string; shown: Plan };

/**
 * Seals the list of a command in a file, and returns the plan, its hash, and what is shown of it. `origin`: of the plan that it replaces;
 * `historyOf`: what Redis knows of the list, where it can be reached.
 */
export async function makePlan(
  invocation: Invocation,
  output: string,
  { origin = originOf(invocation), historyOf = async () => noListHistory }: Parts = {},
): Promise<Made> {
  const { config, env } = invocation;
  const target = readTarget(config, env);
  refuseLoneBurst(invocation, null);
  const input = await sealFiles(invocation.args);
  return withNamedList(invocation, async (list) => {
    checkList(invocation, list.spool);
    const plan = sealPlan(origin, config, target, input, list);
    const sha256 = await writePlanFile(output, plan);
    return { plan, sha256, shown: planOf(invocation, target, list, await historyOf(list)) };
  });
}

function originOf(invocation: Invocation): PlanOrigin {
  return {
    planned_at: isoTime(Date.now()),
    planned_by: whoAmI(invocation.env),
    approve_by: approverOf(invocation),
    reason: reasonOf(invocation.options),
  };
}

/** The hashes of the files of a plan. Throws USAGE for what cannot be read a second time. */
export async function sealFiles(paths: string[]): Promise<SealedInput[]> {
  const files = await openInputs(paths);
  const pipe = files.find(({ isPipe }) => isPipe);
  if (pipe === undefined) return sealInputs(files);
  throw new ExpungeError('USAGE', `${pipe.name}: expected a file, because apply reads it again; got a pipe`, {
    next: 'write the ids to a file first',
  });
}

function outputOf({ options }: Invocation): string {
  if (typeof options.output === 'string') return options.output;
  throw new ExpungeError('USAGE', 'expected a file for the plan, got none', { next: 'add --output plan.json' });
}

function approverOf({ options, env }: Invocation): string | null {
  const name = options.approveBy as string | undefined;
  if (name === undefined) return null;
  const planner = whoAmI(env);
  if (!isSamePerson(name, planner)) return name;
  throw new ExpungeError('USAGE', `--approve-by ${name}: expected somebody else than ${planner}, who makes the plan`, {
    next: 'name another person, as EXPUNGE_USER or their login names them',
  });
}

function tell(invocation: Invocation, file: string, { plan, sha256, shown }: Made): void {
  const code = planCode(sha256);
  sayOn(invocation.stderr)(`Nothing was sent. The plan is in ${file}, its code is ${code}`);
  const who = plan.approve_by === null ? '' : ` (by ${plan.approve_by})`;
  sayOf(invocation)(`  Carry it out${who}: expunge apply ${quoteForShell(file)}`);
  const { v: _, type: __, ...facts } = plan;
  jsonLines(invocation.stdout, invocation.options.json)('sealed_plan', {
    file,
    code,
    plan_sha256: sha256,
    ends_without_newline: shown.endsWithoutNewline,
    ...facts,
  });
}
