import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Seen } from './target-server.ts';

/** The token that every peer sends. */
export const benchToken = 'sandbox-token';

/** A server that answers 204. `ca`: the file of the authority to trust, '' without TLS. `take`: what it saw since the last call. */
export type BenchTarget = { url: string; ca: string; take(): Promise<Seen>; stop(): void };

/** A server in a process of its own, whose certificate is made in the folder. */
export async function startTarget(folder: string, latencyMs: number, tls: boolean): Promise<BenchTarget> {
  const files = tls ? makeCertificate(folder) : [];
  const child = fork(join(import.meta.dirname, 'target-server.ts'), [String(latencyMs), ...files]);
  const [port] = await once(child, 'message');
  const take = async () => {
    child.send('take');
    const [seen] = await once(child, 'message');
    return seen as Seen;
  };
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}`;
  return { url, ca: files[0] ?? '', take, stop: () => child.disconnect() };
}

function makeCertificate(folder: string): [cert: string, key: string] {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const names = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', ...kind, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' });
  return [cert, key];
}
