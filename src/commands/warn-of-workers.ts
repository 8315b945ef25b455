import type { Target } from '../model/target.ts';
import { orderLine } from '../terminal/stop-text.ts';

/** For a run that is left to workers of which there are none, or null if Redis doesn't tell. */
export function warnOfWorkers(stderr: NodeJS.WritableStream, workers: number | null, target: Named): void {
  if (workers !== null && workers > 0) return;
  const words =
    workers === null ? `${notTold('worker of this target')}; if none is,` : 'no worker of this target is alive;';
  stderr.write(`warning: ${words} start one: ${orderLine('worker', target)}\n`);
}

type Named = Pick<Target, 'baseUrl' | 'account'>;

/** For somebody who may be alive: CLIENT LIST, which would tell, is not allowed to every login. */
export function notTold(who: string): string {
  return `this Redis does not say whether a ${who} is alive (CLIENT LIST)`;
}
