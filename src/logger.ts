import { pino } from 'pino';
import { type LogFormat, logText } from './log-text.ts';
import { visible } from './model/visible.ts';

/** Writes one line: facts in fields, the message is a constant. `reason`, if there is one, explains it in words. */
type Write = (facts: object, message: string) => void;

/** `quiet` (-q): only results, warnings, errors and questions. `verbose` (-v): also the log, down to debug. */
export type Verbosity = 'quiet' | 'normal' | 'verbose';

type Stderr = NodeJS.WritableStream & { fd?: number; isTTY?: boolean };

type LogOptions = {
  level: string;
  format: LogFormat | undefined;
  stderr: Stderr;
  /** Names which of several processes writes. */
  who?: { worker?: number };
};

export type Log = Record<'debug' | 'info' | 'warn' | 'error', Write>;

/**
 * The service's log on stderr. `who` names the writer of each line. A line of JSON to a file descriptor is written before the call returns. Errors
 * are reduced to code and message, because error objects of the Redis client carry the command's arguments, including passwords.
 */
export function createLogger({ level, format, stderr, who = {} }: LogOptions): Log {
  return pino(
    {
      level,
      base: { pid: process.pid, ...who },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: plainError },
      redact: ['*.authorization', 'headers.authorization', '*.token', '*.password'],
    },
    destinationOf(format, stderr),
  );
}

/** Whether a log in this format is JSON on this stream. */
export function isJsonLog(format: LogFormat | undefined, stderr: Stderr): boolean {
  return format === 'json' || (format !== 'text' && stderr.isTTY !== true);
}

function destinationOf(format: LogFormat | undefined, stderr: Stderr): { write(line: string): void } {
  if (!isJsonLog(format, stderr)) return { write: (line) => void stderr.write(`${logText(line)}\n`) };
  const lines = stderr.fd === undefined ? stderr : pino.destination({ dest: stderr.fd, sync: true });
  return { write: (line) => void lines.write(`${visible(line.trimEnd())}\n`) }; // JSON escapes, so the line stays exact
}

/** The values that decide where a command logs, and how. */
type Speaker = { verbosity: Verbosity; stderr: Stderr; config: { logFormat?: LogFormat | undefined } };

/** The log of a command that speaks to people: warnings and errors as lines, unless the user asked for the whole log. */
export function logFor({ verbosity, stderr, config }: Speaker, tell: (line: string) => void): Log {
  if (verbosity !== 'verbose') return logAsLines(tell);
  return createLogger({ level: 'debug', format: config.logFormat, stderr });
}

/** A log that writes warnings and errors as a line, and drops the rest. */
function logAsLines(tell: (line: string) => void): Log {
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
