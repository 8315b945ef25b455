import { ExpungeError } from '../errors.ts';
import type { Invocation } from './command.ts';

export async function execute(_invocation: Invocation): Promise<number> {
  throw new ExpungeError('INTERNAL', 'not written yet');
}
