import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ExpungeError } from '../../../src/errors.ts';
import { readTokenFile, readTokenVariable } from '../../../src/token/bearer-token.ts';

function folderOf(): string {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-token-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

function failureOf(body: () => unknown): ExpungeError {
  try {
    body();
  } catch (error) {
    if (error instanceof ExpungeError) return error;
  }
  throw new Error('expected it to be refused');
}

describe('a token is refused, and the message says why and shows nothing of it:', () => {
  it.each([
    ['', 'nothing'],
    [' \n', 'nothing'],
    ['geheim\r', 'text that ends with CR (a Windows line end)'],
    ['Bearer geheim\r', 'text that ends with CR (a Windows line end)'],
    ['geheim\n', 'text that ends with an empty line'],
    ['geheim\r\n', 'text that ends with an empty line'],
    ['geheim ', 'text that ends with white space'],
    ['geheim\u00a0', 'text that ends with white space'],
    ['\tgeheim', 'text that begins with white space'],
    ['\uFEFFgeheim', 'text that begins with a byte order mark'],
    ['geheim\r\ngeheim\r', 'text that holds a line break'],
    ['geheim two', 'text that holds white space'],
    ['Authorization: Bearer geheim', 'a header with its name'],
    ['"geheim"', 'text in quotes'],
    ['{"access_token": "geheim"}', 'JSON, not the token alone'],
    ['-----BEGIN PRIVATE KEY-----\ngeheim\n', 'a key or a certificate'],
    ['g\0e\0h\0e\0i\0m\0', 'text that is not UTF-8'],
    [Buffer.from([0xff, 0xfe, 0x67]).toString(), 'text that is not UTF-8'],
    ['gehe\u200bim', 'text that holds an invisible character'],
    ['gehe\u00efm', 'text that holds a character beyond ASCII'],
    ['geheim=x', 'text that holds a character no token has'],
    ['geheim,geheim', 'text that holds a character no token has'],
  ])('%j', (text, got) => {
    const { code, message, next } = failureOf(() => readTokenVariable('EXPUNGE_TOKEN', text));
    expect([code, message]).toEqual(['CREDENTIALS', `EXPUNGE_TOKEN: expected one bearer token, got ${got}`]);
    expect(message + next).not.toMatch(/gehe|two/);
  });

  it('none of them is said of a token', () => {
    for (const token of ['abc', 'Bearer abc', 'a.b-c_d~e+f/g=='])
      expect(readTokenVariable('EXPUNGE_TOKEN', token)).toBe(`Bearer ${token.replace('Bearer ', '')}`);
  });
});

describe('the token of a file', () => {
  it.each(['abc', 'abc\n', 'abc\r\n', '\uFEFFabc\r\n', 'Bearer abc\n'])('is read from %j', (content) => {
    const file = join(folderOf(), 'token');
    writeFileSync(file, content);
    expect(readTokenFile('--token-file', file)).toBe('Bearer abc');
  });

  it.each(['abc \n', 'abc\r', 'abc\r\r\n', 'abc\n\n', '\n\tabc', ' Bearer abc \n'])(
    'is one when the advice was followed: %j',
    (content) => {
      const file = join(folderOf(), "my 'token'");
      writeFileSync(file, content, { mode: 0o600 });
      const next = failureOf(() => readTokenFile('--token-file', file)).next!;
      execFileSync('sh', ['-c', next.replace('remove it: ', '')]);
      expect([readTokenFile('--token-file', file), readFileSync(file, 'utf8')]).toEqual(['Bearer abc', content.trim()]);
    },
  );

  it('is not cut where more than what surrounds it is wrong', () => {
    const file = join(folderOf(), 'token');
    writeFileSync(file, 'abc\ndef\n');
    expect(failureOf(() => readTokenFile('--token-file', file)).next).not.toContain('perl');
  });
});

describe('the token of a variable', () => {
  it.each(['abc ', 'abc\r', '\n\tabc\n'])('is one when the advice was followed: %j', (token) => {
    const next = failureOf(() => readTokenVariable('EXPUNGE_TOKEN', token)).next!;
    const line = `${next.replace('remove it: ', '')}; printf %s "$EXPUNGE_TOKEN"`;
    const env = { ...process.env, EXPUNGE_TOKEN: token };
    expect(execFileSync('sh', ['-c', line], { env, encoding: 'utf8' })).toBe('abc');
  });
});
