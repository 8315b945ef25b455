import { pino } from 'pino';

/** One line of a log: facts in `fields`, the message is a constant. */
export type Log = Pick<pino.Logger, 'debug' | 'info' | 'warn' | 'error'>;

/**
 * The service's log: JSON lines on stderr. Errors are reduced to code and message, because error objects of the Redis
 * client carry the command's arguments, passwords included.
 */
export function createLogger(level: string): Log {
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: plainError },
      redact: ['*.authorization', 'headers.authorization', '*.token', '*.password'],
    },
    pino.destination({ dest: 2, sync: true }),
  );
}

/** A log that is dropped: for commands that speak through the panel. */
export const silentLog: Log = pino({ level: 'silent' });

function plainError(error: unknown) {
  if (!(error instanceof Error)) return { message: String(error) };
  const { name, message } = error;
  return { name, message, code: (error as { code?: unknown }).code };
}
