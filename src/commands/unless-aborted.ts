/**
 * The value of `work`, or undefined if it fails or the signal comes first: commands to a Redis that hangs may never end, and nobody
 * who asks for an end should wait for them.
 */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T | undefined> {
  let stop = () => {};
  const aborted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
  try {
    return await Promise.race([work, aborted]);
  } catch {
    return undefined;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
