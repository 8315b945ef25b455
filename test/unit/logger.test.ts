import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { LogFormat } from '../../src/log-text.ts';
import { createLogger } from '../../src/logger.ts';

function logged(format: LogFormat, isTTY: boolean, facts: object, message: string, level: 'info' | 'warn' = 'info') {
  let text = '';
  const write = (chunk: Buffer, _encoding: string, done: () => void) => {
    text += chunk;
    done();
  };
  const stderr = Object.assign(new Writable({ write }), { isTTY });
  createLogger({ level: 'info', format, stderr })[level](facts, message);
  return text;
}

describe('the log', () => {
  it.each([
    ['auto', false, true],
    ['auto', true, false],
    ['json', true, true],
    ['text', false, false],
  ] as const)('in the format %s, with a terminal: %s, is JSON: %s', (format, isTTY, isJson) => {
    const line = logged(format, isTTY, { run: 'r1' }, 'run started');
    expect(line.startsWith('{')).toBe(isJson);
    expect(line).toContain('run started');
  });

  it('tells people the time, the message, the reason and the facts, in one line however long it is', () => {
    const facts = { run: 'r1', ids: 12, limit: null, reason: 'x'.repeat(200) };
    expect(logged('text', true, facts, 'run started')).toMatch(
      /^\d\d:\d\d:\d\d run started: x{200} · run r1 · ids 12\n$/,
    );
  });

  it('names a level that is not info, and what an error says', () => {
    const line = logged('text', true, { err: new Error('no route'), tally: { deleted: 2 } }, 'sending stopped', 'warn');
    expect(line.slice(9)).toBe('warn sending stopped · err no route · tally {"deleted":2}\n');
  });

  it('shows control and invisible characters as their codes', () => {
    const line = logged('text', true, { reason: 'a\u001b[2Jb\nc\u200bd' }, 'it failed');
    expect(line.slice(9)).toBe('it failed: a\\u001b[2Jb\\nc\\u200bd\n');
  });
});
