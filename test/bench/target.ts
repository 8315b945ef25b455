import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The token that every peer sends. */
export const benchToken = 'sandbox-token';

/** Something that answers 204 to the ids of a list, fast. `refill` makes it ready for the same list once more. */
export type BenchTarget = { name: string; url: string; refill(): Promise<void>; stop(): void };

/** nginx with one worker where it is installed, else the sandbox in a process of its own, holding the ids of this CSV. */
export async function startTarget(csv: string): Promise<BenchTarget> {
  const port = await freePort();
  const hasNginx = spawnSync('nginx', ['-v']).status === 0;
  return hasNginx ? startNginx(port) : startSandbox(port, csv);
}

async function startNginx(port: number): Promise<BenchTarget> {
  const folder = mkdtempSync(join(tmpdir(), 'expunge-bench-'));
  const path = join(folder, 'nginx.conf');
  writeFileSync(
    path,
    `worker_processes 1; daemon off; pid ${folder}/pid; error_log stderr;
     events { worker_connections 4096; }
     http { access_log off; keepalive_requests 1000000000;
            server { listen 127.0.0.1:${port}; location / { return 204; } } }`,
  );
  const child = spawn('nginx', ['-e', 'stderr', '-c', path], { stdio: 'ignore' });
  await reachable(port);
  const stop = () => {
    child.kill('SIGTERM');
    rmSync(folder, { recursive: true, force: true });
  };
  return { name: 'nginx', url: `http://127.0.0.1:${port}`, refill: async () => {}, stop };
}

async function startSandbox(port: number, csv: string): Promise<BenchTarget> {
  const objects = `${csv}.objects`;
  writeFileSync(
    objects,
    readFileSync(csv, 'utf8')
      .replace(/^(.+)$/gm, 'annotations,$1')
      .replace(/^.*\n/, 'resource,id\n'),
  );
  const bin = join(import.meta.dirname, '../../src/bin.js');
  const start = async () => {
    const child = spawn(process.execPath, [bin, 'sandbox', '--port', String(port), '--objects', objects], {
      stdio: 'ignore',
    });
    await reachable(port);
    return child;
  };
  let child = await start();
  const refill = async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
    child = await start();
  };
  return { name: 'the sandbox', url: `http://127.0.0.1:${port}`, refill, stop: () => child.kill('SIGKILL') };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

async function reachable(port: number): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (Date.now() < deadline) {
    const isUp = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
    if (isUp) return;
  }
  throw new Error('the bench target did not start');
}
