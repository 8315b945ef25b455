import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Something that answers 204 to everything, fast. */
export type BenchTarget = { name: string; url: string; stop(): void };

/** nginx with one worker where it is installed, else a node:http server in a process of its own. */
export async function startTarget(): Promise<BenchTarget> {
  const port = await freePort();
  const hasNginx = spawnSync('nginx', ['-v']).status === 0;
  return hasNginx ? startNginx(port) : startNode(port);
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
  return target('nginx', port, child, () => rmSync(folder, { recursive: true, force: true }));
}

async function startNode(port: number): Promise<BenchTarget> {
  const code = `require('node:http').createServer((q, r) => { r.writeHead(204); r.end(); }).listen(${port}, '127.0.0.1')`;
  const child = spawn(process.execPath, ['-e', code], { stdio: 'ignore' });
  await reachable(port);
  return target('node:http', port, child, () => {});
}

function target(name: string, port: number, child: ChildProcess, cleanUp: () => void): BenchTarget {
  const stop = () => {
    child.kill('SIGTERM');
    cleanUp();
  };
  return { name, url: `http://127.0.0.1:${port}`, stop };
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
  const deadline = Date.now() + 10_000;
  while (Date.now() < deadline) {
    const isUp = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
    if (isUp) return;
  }
  throw new Error('the bench target did not start');
}
