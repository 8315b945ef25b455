import { rmSync } from 'node:fs';
import { describe, test } from 'vitest';
import { openTokenHarness } from '../../support/token-harness.ts';

const none = { tokenUrl: undefined, clientId: undefined };

describe.concurrent('a token file', () => {
  test('loses the newline behind its token', async ({ expect, onTestFinished }) => {
    const { open, file } = await openTokenHarness(onTestFinished);
    for (const end of ['', '\n', '\r\n']) {
      const token = open({ ...none, tokenFile: file('token', `abc${end}`) });
      await token.start();
      expect(token.authorization()).toBe('Bearer abc');
    }
  });

  test('is read again a second after it was read, also when the API refuses what it held', async ({
    expect,
    onTestFinished,
  }) => {
    const { open, file } = await openTokenHarness(onTestFinished);
    let now = 0;
    const path = file('token', 'a\n');
    const token = open({ ...none, tokenFile: path }, { clock: () => now });
    file('token', 'b\n');
    now = 999;
    expect(token.authorization()).toBe('Bearer a');
    now = 1_000;
    expect(token.authorization()).toBe('Bearer b');
    file('token', 'c\n');
    expect(token.refused('Bearer a', '')).toBe('again');
    expect(token.authorization()).toBe('Bearer b');
    now = 1_999;
    expect(token.refused('Bearer b', '')).toBe('again');
    expect(token.authorization()).toBeNull();
    now = 2_000;
    expect([token.authorization(), token.refreshes]).toEqual(['Bearer c', 2]);
    for (; now < 10_000; now += 1_000) expect(token.refused('Bearer c', '')).toBe('again');
    expect(token.refused('Bearer c', '')).toEqual({ halt: `the API refused the token from the file ${path}` });
    file('token', 'd\n');
    now += 1_000;
    expect([token.authorization(), token.refused('Bearer c', '')]).toEqual(['Bearer d', 'again']);
  });

  test('that is away or half written leaves the old token in use', async ({ expect, onTestFinished }) => {
    const { open, file } = await openTokenHarness(onTestFinished);
    let now = 0;
    const path = file('token', 'a');
    const token = open({ ...none, tokenFile: path }, { clock: () => now });
    for (const change of [() => rmSync(path), () => file('token', ''), () => file('token', 'two words')]) {
      change();
      now += 1_000;
      expect(token.authorization()).toBe('Bearer a');
    }
  });
});
