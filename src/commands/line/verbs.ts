import type { Command } from '../command.ts';
import { dashboard, token } from './access-verbs.ts';
import { apply, certificate, explain, plan, report, verify } from './evidence-verbs.ts';
import { cancel, pause, priority, rate, resume, retry, run, runs, status } from './run-verbs.ts';
import { schedule } from './schedule-verbs.ts';
import {
  alerts,
  check,
  completion,
  config,
  help,
  quickstart,
  redis,
  runWorker,
  sandbox,
  worker,
} from './service-verbs.ts';
import { startAll, stopAll, target } from './target-verbs.ts';

/** Every verb, in the order of the help. */
export const verbs: readonly Command[] = [
  run,
  plan,
  apply,
  retry,
  runs,
  status,
  pause,
  resume,
  cancel,
  rate,
  priority,
  stopAll,
  startAll,
  target,
  report,
  explain,
  verify,
  certificate,
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
  runWorker,
];
