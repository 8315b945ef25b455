import { Readable, Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { confirmCount, confirmYes } from '../../../src/terminal/ask.ts';

const nobody = {
  stdin: { isTTY: false } as NodeJS.ReadStream,
  stderr: { isTTY: false } as NodeJS.WriteStream,
  env: {},
  stdinIsData: false,
};
const question = { expected: 1_203, what: '1,203 views', yes: false, confirm: null };

describe('confirmCount', () => {
  it('takes --yes', async () => {
    await expect(confirmCount({ ...question, yes: true }, nobody)).resolves.toBeUndefined();
  });

  it('takes the right --confirm', async () => {
    await expect(confirmCount({ ...question, confirm: 1_203 }, nobody)).resolves.toBeUndefined();
  });

  it('refuses a --confirm of another count, even with --yes', async () => {
    const wrong = confirmCount({ ...question, confirm: 1_200, yes: true }, nobody);
    await expect(wrong).rejects.toMatchObject({
      code: 'USAGE',
      message: '--confirm 1200: expected 1,203, because 1,203 views would be deleted; nothing was sent',
    });
  });

  it('refuses where nobody can be asked, and names the flags', async () => {
    await expect(confirmCount(question, nobody)).rejects.toMatchObject({
      code: 'USAGE',
      message: '1,203 views would be deleted, but there is no terminal to confirm on',
      next: 'add --confirm 1203 or --yes',
    });
  });
});

describe('confirmYes', () => {
  it('takes --yes, and refuses where nobody can be asked', async () => {
    await expect(confirmYes('Cancel the run r1?', true, nobody)).resolves.toBeUndefined();
    await expect(confirmYes('Cancel the run r1?', false, nobody)).rejects.toMatchObject({
      message: 'Cancel the run r1? There is no terminal to confirm on',
      next: 'add --yes',
    });
  });
});

describe('a confirmation on a terminal', () => {
  /** Somebody who types these, one each time the count is asked for. */
  function typing(...texts: string[]) {
    const stdin = Object.assign(new Readable({ read() {} }), { isTTY: true, setRawMode: () => {} });
    let shown = '';
    const asks = ['Type 1203 to delete 1,203 views', '2 tries are left', '1 try is left'];
    const write = (chunk: Buffer, _encoding: string, done: () => void) => {
      const before = shown;
      shown += chunk;
      const asked = asks.findIndex((words) => shown.includes(words) && !before.includes(words));
      if (asked !== -1) setImmediate(() => stdin.push(texts[asked] ?? '\u0003'));
      done();
    };
    const stderr = Object.assign(new Writable({ write }), { isTTY: true, columns: 100, rows: 30 });
    const asking = { stdin: stdin as unknown as NodeJS.ReadStream, stderr: stderr as unknown as NodeJS.WriteStream };
    return confirmCount(question, { ...asking, env: { TERM: 'xterm' }, stdinIsData: false });
  }

  it.each(['1203', '1,203', '1.203', "1'203", '1 203', '1\u2009203', '1\u202f203', '1_203', ' 1203 '])(
    'is given by typing the count, however its digits are grouped: %j',
    async (text) => {
      await expect(typing(`${text}\r`)).resolves.toBeUndefined();
    },
  );

  it('is given in one of three tries', async () => {
    await expect(typing('1204\r', '120\r', '1203\r')).resolves.toBeUndefined();
    await expect(typing('1204\r', '120\r', '12\r')).rejects.toMatchObject({
      message: 'not confirmed; nothing was sent',
    });
  });

  it.each(['1204\r', 'y\r', '\r', '\u0003'])('is not given by %j', async (text) => {
    await expect(typing(text)).rejects.toMatchObject({ message: 'not confirmed; nothing was sent' });
  });
});
