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
