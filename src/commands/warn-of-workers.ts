/** For a run that is left to workers of which there are none. */
export function warnOfWorkers(stderr: NodeJS.WritableStream, workers: number, baseUrl: string): void {
  if (workers > 0) return;
  stderr.write(`warning: no worker of this target is alive; start one: expunge worker --base-url ${baseUrl}\n`);
}
