import { pino } from 'pino';

/** Writes one line: facts in fields, the message is a constant. `reason`, if there is one, says why in words. */
type Write = (facts: object, message: string) => void;

export type Log = Record<'debug' | 'info' | 'warn' | 'error', Write>;

/**
 * The service's log: JSON lines on stderr, each with `who` wrote it; a line to a file descriptor is written before the call returns. Errors are reduced to code and message, because error objects of the Redis
 * client carry the command's arguments, passwords included.
 */
export function createLogger(
  level: string,
  stderr: NodeJS.WritableStream & { fd?: number },
  who: { worker?: number } = {},
): Log {
  return pino(
    {
      level,
      base: { pid: process.pid, ...who },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: plainError },
      redact: ['*.authorization', 'headers.authorization', '*.token', '*.password'],
    },
    stderr.fd === undefined ? stderr : pino.destination({ dest: stderr.fd, sync: true }),
  );
}

/** A log for commands that speak to people: warnings and errors as a line, the rest is dropped. */
export function logAsLines(tell: (line: string) => void): Log {
  const line = (facts: object, message: string) => {
    const { reason } = facts as { reason?: unknown };
    tell(reason === undefined ? message : `${message}: ${String(reason)}`);
  };
  return { debug() {}, info() {}, warn: line, error: line };
}

function plainError(error: unknown) {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message } = error;
  return { name, message, code: (error as { code?: unknown }).code };
}
