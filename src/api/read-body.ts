import type { Context } from 'hono';
import { messageOf } from '../errors.ts';
import { parseStrictJson } from '../strict-json.ts';
import { inTime, Problem } from './problem.ts';

const maxBytes = 64 * 1_024;
const maxMs = 10_000;

/**
 * The text of a body, whatever length its headers say. Throws `too_large`, and `slow` if it is late, because probes need its connection. Hono's own
 * limit makes a new request of it, which fails for chunked ones.
 */
export async function readText({ req }: Context): Promise<string> {
  const late = new Problem('slow', `expected the whole body within ${maxMs / 1_000} s`);
  return inTime(maxMs, readAll(req.raw.body), late);
}

async function readAll(body: ReadableStream<Uint8Array> | null): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new Problem('too_large', `expected at most ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The JSON of a body; {} for an empty one. Throws `invalid` for anything else, and for an object with the same key twice. */
export async function readJson(context: Context): Promise<unknown> {
  const text = await readText(context);
  if (text === '') return {};
  const type = context.req.header('content-type') ?? '';
  if (!/^application\/json\b/.test(type))
    throw new Problem('invalid', `expected application/json, got "${type.slice(0, 100)}"`);
  try {
    return parseStrictJson(text);
  } catch (error) {
    throw new Problem('invalid', `expected JSON: ${messageOf(error)}`);
  }
}
