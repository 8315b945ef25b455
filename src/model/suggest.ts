/** ` Did you mean …?` with the known name nearest to a mistyped one; '' if none is near. */
export function suggest(name: string, known: readonly string[]): string {
  const nearest = known
    .map((candidate) => ({ candidate, steps: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.steps - b.steps)[0];
  return nearest && nearest.steps <= Math.max(2, name.length / 4) ? ` Did you mean ${nearest.candidate}?` : '';
}

/** Sorted by the distance of their base URL from the given one, equal ones first. */
export function nearestFirst<T extends { baseUrl: string }>(all: readonly T[], { baseUrl }: { baseUrl: string }): T[] {
  return all
    .map((one) => ({ one, steps: distance(baseUrl, one.baseUrl) }))
    .sort((a, b) => a.steps - b.steps)
    .map(({ one }) => one);
}

/** Levenshtein distance: single-character changes from a to b. */
function distance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(previous[j]! + 1, row[j - 1]! + 1, change));
    }
    previous = row;
  }
  return previous[b.length]!;
}
