import { quoteForShell } from './shell-word.ts';

/** ` Did you mean …?` with the known name nearest to a mistyped one, as it is typed in a shell; '' if none is near. */
export function suggest(name: string, known: readonly string[]): string {
  const [nearest] = known
    .filter((candidate) => candidate !== name)
    .map((candidate) => ({ candidate, steps: distance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ candidate, steps }) => isNear(name, candidate, steps))
    .sort((a, b) => a.steps - b.steps);
  return nearest === undefined ? '' : ` Did you mean ${quoteForShell(nearest.candidate)}?`;
}

/** Whether few characters differ, and at least one does not: two short names are never far apart. */
function isNear(name: string, candidate: string, steps: number): boolean {
  return steps <= Math.max(2, name.length / 4) && steps < Math.max(name.length, candidate.length);
}

/** Sorts by the distance of the base URLs from the given one, equal ones first. */
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
