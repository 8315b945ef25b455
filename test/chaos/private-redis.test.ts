import { expect, onTestFinished, test } from 'vitest';
import { openPrivateRedis } from '../../src/redis/private/open.ts';
import { privatePlace } from '../../src/redis/private/place.ts';
import { serverOnPath, serverPid } from '../../src/redis/private/server-process.ts';
import { unpackedServer } from '../../src/redis/private/unpack.ts';
import { makeStateDir, removeStateDir } from '../support/redis.ts';

test('never starts a second server beside one that hangs', async () => {
  const stateDir = makeStateDir();
  onTestFinished(() => removeStateDir(stateDir));
  const open = () => openPrivateRedis(stateDir, process.env, () => {}, [serverOnPath, unpackedServer]);
  const { stay } = await open();
  const pid = serverPid(privatePlace(stateDir))!;
  process.kill(pid, 'SIGSTOP');
  try {
    await expect(open()).rejects.toMatchObject({ code: 'UNREACHABLE', message: expect.stringContaining(`pid ${pid}`) });
  } finally {
    process.kill(pid, 'SIGCONT');
    stay?.presence.disconnect();
  }
});
