import { readAlertRules } from '../../help/topics.ts';
import type { Invocation } from '../command.ts';

/** `expunge alerts > rules.yml`: prints alert rules, in a form that Prometheus loads; they distinguish targets. */
export async function execute({ stdout }: Invocation): Promise<number> {
  stdout.write(readAlertRules());
  return 0;
}
