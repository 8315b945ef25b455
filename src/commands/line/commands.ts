import type { Command } from '../command.ts';
import { dashboard, token } from './access-commands.ts';
import { apply, explain, plan, plans, report, verify } from './evidence-commands.ts';
import { cancel, pause, rate, resume, retry, run, runs, status } from './run-commands.ts';
import { schedule } from './schedule-commands.ts';
import { alerts, check, completion, config, help, quickstart, redis, sandbox, worker } from './service-commands.ts';
import { startAll, stopAll, target } from './target-commands.ts';

/** Every command, in the order of the help. */
export const commands: readonly Command[] = [
  run,
  plan,
  apply,
  plans,
  retry,
  runs,
  status,
  pause,
  resume,
  cancel,
  rate,
  stopAll,
  startAll,
  target,
  report,
  explain,
  verify,
  worker,
  schedule,
  dashboard,
  token,
  check,
  config,
  redis,
  sandbox,
  alerts,
  completion,
  help,
  quickstart,
];
