export type AskOptions = {
  /** How long an answer is given again without asking. */
  freshMs: number;
  /** How long anybody waits for one. */
  patienceMs: number;
  /** Monotonic ms. */
  clock: () => number;
};

/**
 * Makes asking cheap and bounded: whoever asks gets the answer, or null if it failed or didn't come in time. Something is asked at most once
 * at a time, however long that takes, so that nothing piles up while it hangs.
 */
export function askOnce<T>(ask: () => Promise<T>, { freshMs, patienceMs, clock }: AskOptions): () => Promise<T | null> {
  let known: { answer: T; at: number } | null = null;
  let asking: Promise<T | null> | null = null;
  const askNow = async () => {
    try {
      const answer = await ask();
      known = { answer, at: clock() };
      return answer;
    } catch {
      return null;
    } finally {
      asking = null;
    }
  };
  return () => {
    if (known !== null && clock() - known.at < freshMs) return Promise.resolve(known.answer);
    asking ??= askNow();
    return inTime(asking, patienceMs);
  };
}

async function inTime<T>(answer: Promise<T | null>, ms: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
