import { readAlertRules } from '../help/topics.ts';
import type { Invocation } from './command.ts';

/** `expunge alerts > rules.yml`: alert rules that tell targets apart, as Prometheus loads them. */
export async function execute({ stdout }: Invocation): Promise<number> {
  stdout.write(readAlertRules());
  return 0;
}
