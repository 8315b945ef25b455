/** Writes one `--json` object a line; without `--json` nothing. */
export type JsonLines = (type: string, facts: Record<string, unknown>) => void;

export function jsonLines(stdout: NodeJS.WriteStream, wanted: unknown): JsonLines {
  if (wanted !== true) return () => {};
  return (type, facts) => stdout.write(`${JSON.stringify({ v: 1, type, ...facts })}\n`);
}
