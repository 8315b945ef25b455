const roundingMs = 1_500; // servers round a reset to seconds

/**
 * Whether the reset of a limit that is used up is a wait. Such a server accepts nothing until the reset. A server that accepts requests before means
 * something else by its headers, for example when its bucket is full, so a process no longer waits for its resets.
 */
export class UsedUpLimit {
  #fromMs = 0;
  #untilMs = 0;
  #isDisproved = false;

  /** Whether acceptances matter: called for nearly every answer. */
  get isWatched(): boolean {
    return this.#untilMs > 0 && !this.#isDisproved;
  }

  /** Records an answer that says that nothing is left until the reset. Returns whether to wait for that. */
  announce(nowMs: number, resetMs: number): boolean {
    if (nowMs >= this.#untilMs) [this.#fromMs, this.#untilMs] = [nowMs, nowMs + resetMs];
    return !this.#isDisproved && resetMs > roundingMs;
  }

  /** Records that a request which was sent at this time was accepted. */
  accepted(sentMs: number): void {
    this.#isDisproved ||= sentMs > this.#fromMs && sentMs < this.#untilMs - roundingMs;
  }
}
