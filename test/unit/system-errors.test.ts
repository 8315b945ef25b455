import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { messageOf } from '../../src/errors.ts';
import {
  describeProgramError,
  explainConnectionError,
  explainFileError,
  explainListenError,
} from '../../src/system-errors.ts';

const withCode = (code: string, message = `${code}: what the system says`) =>
  Object.assign(new Error(message), { code });

/** What nobody should have to look up. */
const raw = /\b(E[A-Z]{3,}|[A-Z]+(_[A-Z0-9]+)+|errno|syscall)\b/;

describe('what a file or folder refuses is said in words, with what to do next', () => {
  it.each([
    ['ENOENT', 'not found'],
    ['ENOTDIR', 'not found: a part of its path is no folder'],
    ['EISDIR', 'expected a file, got a folder'],
    ['EACCES', 'permission denied'],
    ['EPERM', 'permission denied'],
    ['EROFS', 'the file system is read-only'],
    ['ENOSPC', 'no space left on the disk'],
    ['EDQUOT', 'the disk quota is used up'],
    ['EFBIG', 'the file is larger than allowed'],
    ['EMFILE', 'this process may open no more files'],
    ['ENFILE', 'this machine may open no more files'],
    ['ELOOP', 'its symbolic links form a loop'],
    ['ENAMETOOLONG', 'its name is too long'],
    ['EEXIST', 'it exists already'],
    ['EBUSY', 'it is in use, or a file that is mounted by itself'],
    ['EXDEV', 'it is on another file system'],
    ['EIO', 'the disk reports an error'],
    ['ESTALE', 'the server of this network file system has lost it'],
  ])('%s: %s', (code, words) => {
    const trouble = explainFileError(withCode(code));
    expect(trouble).toEqual({ words, next: expect.stringMatching(/\w/) });
    expect(`${trouble.words} ${trouble.next}`).not.toMatch(raw);
    expect(messageOf(Object.assign(withCode(code), { path: '/x/list.csv' }))).toBe(`/x/list.csv: ${words}`);
  });

  it('of a current folder that is gone names it, since the error does not', () => {
    const error = Object.assign(withCode('ENOENT'), { syscall: 'uv_cwd' });
    expect(messageOf(error)).toBe('the folder in which the command runs: not found');
  });
});

describe('what a connection refuses is said in words, with what to do next', () => {
  it.each([
    ['ECONNREFUSED', 'connection refused'],
    ['ECONNRESET', 'connection reset'],
    ['EPIPE', 'connection reset'],
    ['ETIMEDOUT', 'connection timed out'],
    ['CONNECT_TIMEOUT', 'connection timed out'],
    ['UND_ERR_CONNECT_TIMEOUT', 'connection timed out'],
    ['UND_ERR_SOCKET', 'connection closed before an answer came'],
    ['ENOTFOUND', 'no such host'],
    ['EAI_AGAIN', 'its host name cannot be resolved'],
    ['EHOSTUNREACH', 'no route to the host'],
    ['ENETUNREACH', 'no route to the host'],
    ['EADDRNOTAVAIL', 'no free port is left for a connection'],
    ['HPE_INVALID_CONSTANT', 'it does not speak HTTP on this port'],
    ['UND_ERR_PRX_TLS', 'TLS to the proxy failed'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'it does not speak TLS on this port'],
    ['ERR_SSL_PACKET_LENGTH_TOO_LONG', 'it does not speak TLS on this port'],
    ['EPROTO', 'it does not speak TLS on this port'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'its certificate is signed by an authority that is not trusted here'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'its certificate is signed by an authority that is not trusted here'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'its certificate is signed by an authority that is not trusted here'],
    ['CERT_HAS_EXPIRED', 'its certificate has expired'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another name, not for this host'],
    ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', /^it breaks off the TLS handshake/],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', 'it speaks no version of TLS that we do'],
  ])('%s: %s', (code, words) => {
    for (const known of [withCode(code), code]) {
      const trouble = explainConnectionError(known);
      expect(trouble.words).toMatch(words);
      expect(trouble.next).toMatch(/\w/);
      expect(`${trouble.words} ${trouble.next}`).not.toMatch(raw);
    }
  });

  it('also where it is wrapped, as of a name with several addresses, and what is no code stays as it is', () => {
    const both = new AggregateError([withCode('ECONNREFUSED'), withCode('ENETUNREACH')]);
    expect(explainConnectionError(both).words).toBe('connection refused');
    expect(explainConnectionError(new Error('x', { cause: withCode('ENOTFOUND') })).words).toBe('no such host');
    expect(explainConnectionError('no answer in time').words).toBe('no answer in time');
  });

  it('with the answer of a proxy', () => {
    const refused = withCode('UND_ERR_ABORTED', 'Proxy response (407) !== 200 when HTTP Tunneling');
    expect(explainConnectionError(refused)).toEqual({
      words: 'the proxy refused to pass it on: 407',
      next: 'check --proxy, and the user and password in it',
    });
  });
});

describe('what a port refuses is said in words, with what to do next', () => {
  it.each([
    ['EADDRINUSE', 'something listens there already'],
    ['EADDRNOTAVAIL', 'this machine has no such address'],
    ['EACCES', 'no permission to listen there'],
    ['ENOTFOUND', 'no such host'],
    ['ERR_SOCKET_BAD_PORT', 'there is no such port'],
  ])('%s: %s', (code, words) => {
    expect(explainListenError(withCode(code))).toEqual({ words, next: expect.stringMatching(/\w/) });
  });
});

describe('the words are those of what really happens', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'expunge-words-'));
    symlinkSync(join(folder, 'loop'), join(folder, 'loop'));
    writeFileSync(join(folder, 'file'), '');
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each([
    ['none', 'not found'],
    ['file/x', 'not found: a part of its path is no folder'],
    ['.', 'expected a file, got a folder'],
    ['loop', 'its symbolic links form a loop'],
    ['x'.repeat(300), 'its name is too long'],
  ])('%s', (name, words) => {
    const read = () => readFileSync(join(folder, name));
    expect(read).toThrow();
    try {
      read();
    } catch (error) {
      expect(explainFileError(error).words).toBe(words);
    }
  });

  it('a port that is taken', async () => {
    const first = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => first.once('listening', resolve));
    const second = createServer().listen((first.address() as { port: number }).port, '127.0.0.1');
    const error = await new Promise((resolve) => second.once('error', resolve));
    first.close();
    expect(explainListenError(error).words).toBe('something listens there already');
  });

  it('of a program that is not there or may not be run', () => {
    expect(describeProgramError(withCode('ENOENT'))).toBe('there is no such program');
    expect(describeProgramError(withCode('EACCES'))).toBe('it is not executable');
  });

  it('and of a code that nobody thought of at least a sentence', () => {
    const codes = Object.keys(constants.errno);
    const told = codes.flatMap((code) => [explainFileError(withCode(code)).words, explainConnectionError(code).words]);
    for (const words of told) expect(words).toMatch(/^[a-z].* /);
  });
});
