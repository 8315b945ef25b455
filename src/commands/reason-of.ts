/** What `--reason` says: why something is done, for the audit trail. '' where nobody said. */
export function reasonOf(options: Record<string, unknown>): string {
  return typeof options.reason === 'string' ? options.reason.trim() : '';
}
