/** For a run that is left to workers of which there are none, or null if Redis doesn't tell. */
export function warnOfWorkers(stderr: NodeJS.WritableStream, workers: number | null, baseUrl: string): void {
  if (workers !== null && workers > 0) return;
  const words =
    workers === null ? `${notTold('worker of this target')}; if none is,` : 'no worker of this target is alive;';
  stderr.write(`warning: ${words} start one: expunge worker --base-url ${baseUrl}\n`);
}

/** For somebody who may be alive: CLIENT LIST, which would tell, is not allowed to every login. */
export function notTold(who: string): string {
  return `this Redis does not say whether a ${who} is alive (CLIENT LIST)`;
}
