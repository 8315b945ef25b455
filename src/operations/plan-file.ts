import { open, readFile, rename, rm } from 'node:fs/promises';
import { ExpungeError } from '../errors.ts';
import { processName } from '../stale-path.ts';
import { explainFileError, isFileError, systemCode } from '../system-errors.ts';
import { planFileText, planHash, type SealedPlan, sealedSettings } from './sealed-plan.ts';

/**
 * Writes a plan, readable by its owner only, and returns its hash. Replaces a plan of that name as a whole; throws USAGE for any other file, which is
 * kept.
 */
export async function writePlanFile(path: string, plan: SealedPlan): Promise<string> {
  const text = planFileText(plan);
  await readPlanInPlace(path);
  const draft = `${path}.${processName()}.part`;
  try {
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {});
    throw unusable(path, 'the plan cannot be written', error);
  }
  return planHash(text);
}

/**
 * The hash of the plan that is in the place of a new one; null if there is no file, or an empty one. Throws USAGE for a file with any other contents,
 * so that naming the list by mistake does not destroy it.
 */
export async function readPlanInPlace(path: string): Promise<string | null> {
  try {
    const text = await readFile(path, 'utf8');
    if (text === '') return null; // as mktemp makes it
    if (parsePlan(text) !== null) return planHash(text);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw unusable(path, 'the plan cannot be written', error);
  }
  throw new ExpungeError('USAGE', `${path}: this file exists and is not a plan; it was not replaced`, {
    next: 'name another file with --output, or remove this one',
  });
}

/** The plan in a file, and its hash. Throws USAGE for a file that cannot be read, or that `expunge plan` did not write in this form. */
export async function readPlanFile(path: string): Promise<{ plan: SealedPlan; sha256: string }> {
  const text = await readFile(path, 'utf8').catch((error) => {
    throw unusable(path, 'the plan cannot be read', error);
  });
  const plan = parsePlan(text);
  if (plan === null || planFileText(plan) !== text)
    throw new ExpungeError(
      'USAGE',
      `${path}: expected a plan written by expunge plan; this file is not one, or was edited`,
      {
        next: (toType) => `make the plan again: ${toType('plan', 'FILE', '…', '--output', 'PLAN')}`,
      },
    );
  return { plan, sha256: planHash(text) };
}

function parsePlan(text: string): SealedPlan | null {
  try {
    const plan = JSON.parse(text);
    return isPlan(plan) ? plan : null;
  } catch {
    return null;
  }
}

/** Whether a value looks like a plan. Checks only what is read before the code is compared: after that, nothing else can be wrong. */
function isPlan(plan: SealedPlan): boolean {
  const { rules, target, input, ids } = plan;
  const areRules = sealedSettings.every((name) => rules[name] === null || typeof rules[name] === 'string');
  const areNamed = Array.isArray(input) && input.length > 0 && input.every(({ name }) => typeof name === 'string');
  const isNamed = plan.approve_by === null || typeof plan.approve_by === 'string';
  const words = [plan.planned_by, plan.planned_at, plan.reason, target.base_url, target.account, ids.sha256];
  const isText = words.every((word) => typeof word === 'string');
  return plan.v === 2 && plan.type === 'plan' && areRules && areNamed && isNamed && isText;
}

function unusable(path: string, what: string, error: unknown): unknown {
  if (!isFileError(error)) return error;
  const { words, next } = explainFileError(error);
  return new ExpungeError('USAGE', `${path}: ${what}: ${words}`, { cause: error, next });
}
