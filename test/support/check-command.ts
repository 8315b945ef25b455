import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { command } from './command.ts';
import type { RedisProcess } from './redis-process.ts';

export const password = 'canary-password-4714';
const known = [password, 'canary-sentinel-4715', 'canary-wrong-4716'];

/** Takes connections, and hears nothing. */
const api = createServer((socket) => socket.on('error', () => {}));

/** The tests of the file that calls this have such an API. */
export function openSilentApi(): void {
  beforeAll(async () => {
    await once(api.listen(0, '127.0.0.1'), 'listening');
  });
  afterAll(() => void api.close());
}

export type Checked = { code: number | null; lines: string[]; findings: unknown[] };

/** The lines of `expunge check` about Redis, and how it ends. No secret is ever among them. */
export async function checkCommand(env: NodeJS.ProcessEnv, args: string[] = []): Promise<Checked> {
  const usual = { EXPUNGE_TOKEN: 'token', EXPUNGE_BASE_URL: `http://127.0.0.1:${(api.address() as AddressInfo).port}` };
  const { stdout, stderr, code } = await command(['check', ...args], { env: { ...usual, ...env } });
  expect(known.filter((secret) => (stdout + stderr).includes(secret))).toEqual([]);
  expect(stderr).toBe('');
  const isOfRedis = (line: string) => / redis | → /.test(line);
  if (args.includes('--json'))
    return {
      code,
      lines: [],
      findings: stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    };
  return {
    findings: [],
    code,
    lines: stdout
      .split('\n')
      .filter(isOfRedis)
      .map((line) => line.trim().replace(/ +/g, ' ')),
  };
}

/** A file that only its owner may read, beside the server. */
export function secretFile({ folder }: RedisProcess, text: string): string {
  const path = join(folder, 'secret');
  writeFileSync(path, `${text}\n`, { mode: 0o600 });
  return path;
}
