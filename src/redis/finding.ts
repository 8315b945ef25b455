/** One aspect of what was looked at: whether it is fit, in words, and what to do where it isn't. */
export type Finding = { aspect: string; state: 'ok' | 'warning' | 'wrong'; words: string; next: string | null };

export function fine(aspect: string, words: string): Finding {
  return { aspect, state: 'ok', words, next: null };
}

export function doubtful(aspect: string, words: string, next: string): Finding {
  return { aspect, state: 'warning', words, next };
}

export function wrong(aspect: string, words: string, next: string | null): Finding {
  return { aspect, state: 'wrong', words, next };
}
