import { namedTarget } from '../../config/check-target.ts';
import { oneOf } from '../../config/parse-setting.ts';
import { ExpungeError, exitCodes, messageOf } from '../../errors.ts';
import { count, plural } from '../../format.ts';
import type { Wanted } from '../../lookup/find-id.ts';
import { anyResource, type Resource, resources } from '../../model/resource.ts';
import { type Appearance, isSearchable, noRunHas, toAppearances } from '../../operations/search-runs.ts';
import { explainText } from '../../terminal/explain-text.ts';
import { startProgress } from '../../terminal/live-panel.ts';
import { targetName } from '../../terminal/stop-text.ts';
import { styleOf } from '../../terminal/style.ts';
import { type Invocation, jsonLines } from '../command.ts';
import { progressStream, writeWarnings } from '../session.ts';
import { withOperations } from '../with-operations.ts';

/** Shows the outcome of an id in each run of the target, newest first. Only reads; throws USAGE if no run has the id. */
export async function execute(invocation: Invocation): Promise<number> {
  const { config, env, toType, stderr } = invocation;
  const wanted = readWanted(invocation);
  const target = namedTarget(config);
  const searched = { runs: 0, rows: 0 };
  const onProblem = (words: string) => writeWarnings(stderr, [words], toType);
  const text = () => `Searching ${targetName(target)}: ${plural(searched.runs, 'runs')}, ${count(searched.rows)} rows`;
  const start = () => startProgress(progressStream(invocation), env, text);
  return withOperations(invocation, 'records', async (records) => {
    let progress = start();
    let isFound = false;
    try {
      for await (const appearance of records.search({ target, wanted, searched, onProblem })) {
        progress.stop(); // the progress line would overwrite the result
        showAppearance(invocation, appearance);
        progress = start();
        isFound = true;
      }
    } finally {
      progress.stop();
    }
    if (isFound) return exitCodes.OK.exit;
    throw noRunHas({ target, wanted, searched });
  });
}

/** Reads the id of a command line. Throws USAGE for an unknown resource. */
function readWanted({ args }: Invocation): Wanted {
  return { resource: readResource(args[0]!), id: args[1]! };
}

function readResource(text: string): Resource {
  try {
    return isSearchable(text) ? text : oneOf(resources)(text);
  } catch (error) {
    throw new ExpungeError('USAGE', messageOf(error), {
      next: (toType) => `for example: ${toType('explain', anyResource, 'ID')}`,
    });
  }
}

function showAppearance({ options, stdout }: Invocation, { run, found, proof }: Appearance): void {
  const now = Date.now();
  const look = { style: styleOf(stdout), columns: stdout.columns || Number.POSITIVE_INFINITY };
  if (!options.json) stdout.write(`${explainText(run, { ...found, proof }, now, look)}\n`);
  const line = jsonLines(stdout, options.json);
  for (const facts of toAppearances(run, found, now)) line('appearance', facts);
}
