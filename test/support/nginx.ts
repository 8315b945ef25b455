import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Harness } from './harness.ts';
import { startProgram, until } from './processes.ts';
import { freePort } from './redis-process.ts';

/** Debian has it where only root looks. */
const env = { PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` };

export const hasNginx = (() => {
  try {
    execFileSync('nginx', ['-v'], { env, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

/** A limit of nginx: so many requests a second, and what `limit_req` says about a burst. */
export type NginxLimit = { perSecond: number; burst: string };

/**
 * Starts an nginx that deletes every id it is asked to delete, at its limit, and waits until it listens. It runs in the foreground, with its files
 * in a folder of the harness, and ends with the harness. Its log has the form that `limited-server.ts` writes.
 */
export async function startNginx(harness: Harness, limit: NginxLimit, logFile: string): Promise<string> {
  const folder = join(harness.folder, 'nginx');
  mkdirSync(folder);
  const port = await freePort();
  const config = harness.file('nginx.conf', configOf(limit, { folder, port, logFile }));
  const running = harness.own(startProgram('nginx', ['-p', folder, '-c', config], env));
  await until('nginx listens', () => {
    if (running.isOver) throw new Error(`nginx ended: ${running.stderr}`);
    return accepts(port);
  });
  return `http://127.0.0.1:${port}`;
}

type Place = { folder: string; port: number; logFile: string };

/** `return` would answer before the limit is looked at: `try_files` comes after it. */
function configOf({ perSecond, burst }: NginxLimit, { folder, port, logFile }: Place): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `
daemon off;
master_process off;
pid ${folder}/pid;
error_log ${folder}/error.log;
events {}
http {
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  log_format answers '$msec $request_time $status';
  access_log ${logFile} answers;
  limit_req_zone $server_name zone=everybody:1m rate=${perSecond}r/s;
  limit_req_status 429;
  server {
    listen 127.0.0.1:${port};
    server_name everybody;
    location / {
      limit_req zone=everybody ${burst};
      try_files /nothing @deleted;
    }
    location @deleted {
      return 204;
    }
  }
}
`;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
