import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { never, until } from '../../support/processes.ts';
import { openTokenHarness } from '../../support/token-harness.ts';

const none = { tokenUrl: undefined, clientId: undefined };

/** Ends what a command has left behind. */
function kill(pidFile: string): void {
  process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL');
}

describe.concurrent('a token command', () => {
  test.for<[string, string, string, number | null]>([
    ['a token with a newline', `echo abc.def`, 'Bearer abc.def', null],
    ['a token without one', `printf %s abc==`, 'Bearer abc==', null],
    ['JSON', `echo '{"access_token":"abc","expires_in":90}'`, 'Bearer abc', 90_000],
    [
      'JSON with a type',
      `echo ' {"access_token":"abc","token_type":"BEARER","expires_in":"60"}'`,
      'Bearer abc',
      60_000,
    ],
    ['a token beside words on stderr', `echo warning >&2; echo abc`, 'Bearer abc', null],
  ])('prints %s', async ([, tokenCommand, header, lifeMs], { expect, onTestFinished }) => {
    const token = (await openTokenHarness(onTestFinished)).open({ ...none, tokenCommand });
    await token.start();
    expect([token.authorization(), token.lifeMs, token.waiting]).toEqual([header, lifeMs, '']);
  });

  test.for<[string, string, RegExp]>([
    [
      'fails',
      'echo canary-1234567890; echo "no: canary-1234567890 token=geheim" >&2; exit 3',
      /ended with 3: no: \*\*\* token=\*\*\*$/,
    ],
    ['is not there', 'expunge-no-such-program', /^the token command ended with 127: .*not found/],
    ['prints nothing', 'true', /expected one bearer token or JSON with access_token, got nothing/],
    ['prints two words', 'echo canary two', /got text that holds white space/],
    ['prints two lines', 'printf "canary\\n\\n"', /got text that ends with an empty line/],
    ['prints broken JSON', `echo '{"access_token": canary'`, /got JSON .*: it is not JSON \(line 1 column 18\)/],
    [
      'prints two tokens',
      `echo '{"access_token":"canary","access_token":"geheim"}'`,
      /got JSON that cannot be read: it has "access_token" twice in one object/,
    ],
    ['prints JSON without a token', `echo '{"token":"canary"}'`, /got JSON without a text access_token/],
    [
      'prints a token with CR in JSON',
      `printf %s '{"access_token":"canary\\r"}'`,
      /got JSON whose access_token is text that ends with CR/,
    ],
    ['prints another type', `echo '{"access_token":"canary","token_type":"mac"}'`, /another type than Bearer/],
    ['prints too much', 'yes canary', /prints too much/],
    ['kills itself', 'kill -9 $$', /was ended by SIGKILL/],
  ])(
    'that %s at first is refused, without showing what it printed',
    async ([, tokenCommand, words], { expect, onTestFinished }) => {
      const token = (await openTokenHarness(onTestFinished)).open({ ...none, tokenCommand });
      const failure = await token.start().catch((error) => error);
      expect(failure).toMatchObject({ code: 'CREDENTIALS', message: expect.stringMatching(words) });
      expect(`${failure.message} ${token.waiting} ${token.source}`).not.toMatch(/canary|geheim/);
    },
  );

  test('runs again before the token expires, and goes on with the old one if it fails then', async ({
    expect,
    onTestFinished,
  }) => {
    const { open, folder, file } = await openTokenHarness(onTestFinished);
    file('n', '');
    const count = () => readFileSync(join(folder, 'n'), 'utf8').length;
    const tokenCommand = `cd ${folder}; printf x >> n; n=$(wc -c < n); [ $n -ne 2 ] && echo "{\\"access_token\\":\\"t$n\\",\\"expires_in\\":3}"`;
    const token = open({ ...none, tokenCommand }, { random: () => 0 });
    await token.start();
    expect(token.authorization()).toBe('Bearer t1');
    await until('it failed', () => count() === 2);
    await until('it ran a third time', () => token.authorization() === 'Bearer t3');
  });

  test('runs again when the API rejected the token', async ({ expect, onTestFinished }) => {
    const { open, file } = await openTokenHarness(onTestFinished);
    const tokenCommand = `cat ${file('token', 't1')}`;
    const token = open({ ...none, tokenCommand });
    await token.start();
    file('token', 't2');
    token.accepted('Bearer t1', 0);
    for (let n = 0; n < 10; n++) token.refused('Bearer t1', '');
    await until('it may be sent again', () => token.authorization());
    token.sent('Bearer t1');
    expect(token.refused('Bearer t1', '')).toBe('again');
    await until('there is another one', () => token.authorization() === 'Bearer t2');
  });

  test('and what it started ends with the token', async ({ expect, onTestFinished }) => {
    const { open, folder, file } = await openTokenHarness(onTestFinished);
    file('n', '');
    const count = () => readFileSync(join(folder, 'n'), 'utf8').length;
    const token = open({ ...none, tokenCommand: `(while :; do printf x >> ${folder}/n; sleep 0.02; done) & wait` });
    const started = token.start().catch(() => {});
    await until('it runs', () => count() > 2);
    await token.close();
    await started;
    const then = count();
    await never('it goes on', () => count() > then, 200);
    expect(token.authorization()).toBeNull();
  });

  test.for(['sleep 600 &', 'setsid sleep 600 & echo a warning >&2;'])(
    'that leaves `%s` behind gives its token all the same',
    async (left, { expect, onTestFinished }) => {
      const { open, folder } = await openTokenHarness(onTestFinished);
      onTestFinished(() => kill(join(folder, 'pid')));
      const token = open({ ...none, tokenCommand: `${left} echo $! > ${folder}/pid; echo abc` });
      await token.start(); // longer than this test may take, if it waited for the other
      expect(token.authorization()).toBe('Bearer abc');
    },
  );

  test('that left its process group and never ends is given up with the token', async ({ expect, onTestFinished }) => {
    const { open, folder } = await openTokenHarness(onTestFinished);
    const pid = join(folder, 'pid');
    onTestFinished(() => kill(pid));
    const token = open({ ...none, tokenCommand: `setsid sh -c 'echo $$ > ${pid}; exec sleep 600' & wait` });
    const started = token.start().then(() => token.waiting);
    await until('it runs', () => existsSync(pid) && readFileSync(pid, 'utf8') !== '');
    await token.close();
    expect([await started, token.authorization()]).toEqual([expect.any(String), null]);
  });

  test('sees the variables it needs, and none of our secrets', async ({ expect, onTestFinished }) => {
    const { open, folder } = await openTokenHarness(onTestFinished);
    const secrets = ['REDIS_URL', 'EXPUNGE_TOKEN', 'EXPUNGE_CLIENT_SECRET', 'EXPUNGE_TOKEN_COMMAND'];
    const ours = Object.fromEntries([...secrets, 'EXPUNGE_TOKEN_URL', 'EXPUNGE_PROXY'].map((name) => [name, 'geheim']));
    const env = { PATH: process.env.PATH, VAULT_ADDR: 'https://vault.example', HOME: '/home/ana', ...ours };
    const token = open({ ...none, tokenCommand: `env > ${folder}/env; echo abc` }, { env });
    await token.start();
    const seen = readFileSync(join(folder, 'env'), 'utf8');
    expect(seen).toMatch(/^VAULT_ADDR=https:\/\/vault\.example$/m);
    expect(seen).toMatch(/^HOME=\/home\/ana$/m);
    expect(seen).not.toContain('geheim');
  });

  test('is named by its program only', async ({ expect, onTestFinished }) => {
    const { open } = await openTokenHarness(onTestFinished);
    expect(open({ ...none, tokenCommand: 'vault read -field=token canary' }).source).toBe('the command vault');
    expect(open({ ...none, tokenCommand: 'KEY=canary vault' }).source).toBe('the token command');
  });
});
