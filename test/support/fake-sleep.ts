/** Sleeps by `setTimeout`, which tests replace: true after so many ms, false as soon as the signal is aborted. */
export async function fakeSleep(ms: number, ended?: AbortSignal): Promise<boolean> {
  if (ended?.aborted) return false;
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(true), ms);
    ended?.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve(false);
    });
  });
}
