import { readTarget } from '../../config/check-target.ts';
import { historyForPlan } from '../../operations/dry-plan.ts';
import { type MadePlan, makePlan, newOrigin } from '../../operations/make-plan.ts';
import { planCode } from '../../operations/sealed-plan.ts';
import { forecastFacts } from '../../terminal/forecast-text.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { infoWriter, lineWriter, toListAction } from '../session.ts';
import { withNamedList } from './run.ts';
import { writePlan } from './show-plan.ts';

/** Seals the plan of a command in a file. */
export async function planInFile(invocation: Invocation, output: string): Promise<number> {
  await makeShownPlan(invocation, output, (made) => tell(invocation, output, made));
  return 0;
}

/** Makes the plan of a command in a file, shows it, and then calls `body`, while its list is still there. */
export async function makeShownPlan<T>(
  invocation: Invocation,
  output: string,
  body: (made: MadePlan) => T,
): Promise<Awaited<T>> {
  const { args: paths, options, toType, stdout, stderr } = invocation;
  const action = toListAction(invocation);
  const notes: string[] = [];
  const made = await makePlan(action, {
    paths,
    output,
    origin: newOrigin(action.by, options.approveBy),
    read: (read) => withNamedList(invocation, paths, read),
    historyOf: async (list) => {
      const target = readTarget(action.config, action.env);
      const { history, notes: told } = await historyForPlan(action, { target, list, retries: null });
      notes.push(...told);
      return history;
    },
  });
  const out = options.json ? stderr : stdout; // the plan is the result
  writePlan(out, made.shown, toType);
  for (const note of notes) lineWriter(stderr)(note);
  return await body(made);
}

function tell(invocation: Invocation, file: string, { plan, sha256, shown, replaced }: MadePlan): void {
  const code = planCode(sha256);
  lineWriter(invocation.stderr)(`Nothing was sent. The plan is in ${file}, its code is ${code}`);
  if (replaced !== null && replaced !== sha256)
    infoWriter(invocation)(`  It replaced the plan ${planCode(replaced)}, which cannot be applied any more.`);
  const who = plan.approve_by === null ? '' : ` (by ${plan.approve_by})`;
  infoWriter(invocation)(`  Carry it out${who}: ${invocation.toType('apply', file)}`);
  const { v: _, type: __, ...facts } = plan;
  jsonLines(invocation.stdout, invocation.options.json)('sealed_plan', {
    file,
    code,
    plan_sha256: sha256,
    ends_without_newline: shown.endsWithoutNewline,
    expected: forecastFacts(shown.forecast),
    ...facts,
  });
}
