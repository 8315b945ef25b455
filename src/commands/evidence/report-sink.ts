import { fstatSync, writeSync } from 'node:fs';
import { notWritten, type Sink } from '../../report/report.ts';
import { systemCode } from '../../system-errors.ts';
import { dataOutput } from '../../terminal/safe-output.ts';

/**
 * A sink that writes a report to stdout: byte for byte to a file or pipe; on a terminal with invisible characters made visible. If it fails, a
 * redirected stdout holds a part of the report, and the error says so.
 */
export function toSink(out: NodeJS.WritableStream & { isTTY?: boolean }, run: string): Sink {
  const file = fileOf(out);
  const sink = file === null ? streamSink(dataOutput(out)) : fileSink(file);
  return (text) =>
    sink(text).catch((error) => {
      throw notWritten('stdout, which holds a part of it', run, error);
    });
}

/** The descriptor of the regular file that a stream writes to, or null. */
function fileOf(out: NodeJS.WritableStream): number | null {
  const { fd } = out as { fd?: number };
  return fd !== undefined && fstatSync(fd).isFile() ? fd : null;
}

/** Writes to the descriptor itself: a file stream treats a short write as complete, so a full disk would silently truncate the report. */
function fileSink(file: number): Sink {
  return async (text) => {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
    return true;
  };
}

/** Waits until each text is written. A reader that closes early (`| head`) is not an error. */
function streamSink(out: NodeJS.WritableStream): Sink {
  out.on('error', () => {}); // the callback below also gets the error; without a listener it would end the process
  return (text) =>
    new Promise((resolve, reject) => {
      out.write(text, (error) => {
        if (!error) resolve(true);
        else if (['EPIPE', 'ERR_STREAM_DESTROYED'].includes(systemCode(error))) resolve(false);
        else reject(error);
      });
    });
}
