import { readFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';

// Answers 204 to every request without a body, `latencyMs` later, and does as little as it can for it.
// Usage: fork target-server.ts LATENCY_MS [CERT KEY]; tells its port, and for each message the facts since the last one.

/** What the server saw: when the first request came and the last answer left, its CPU seconds between, and answers in each tenth of a second. */
export type Seen = { firstAt: number; lastAt: number; cpu: number; answers: number; tenths: number[] };

const [latency, cert, key] = process.argv.slice(2);
const latencyMs = Number(latency);
const answer = 'HTTP/1.1 204 No Content\r\n\r\n';
const end = Buffer.from('\r\n\r\n');
let seen: Seen = nothing();
let cpuAtFirst = 0;

const server = cert
  ? createTlsServer({ cert: readFileSync(cert), key: readFileSync(key!), ALPNProtocols: ['http/1.1'] }, serve)
  : createServer({ noDelay: true }, serve);
server.listen(0, '127.0.0.1', () => process.send!((server.address() as { port: number }).port));
process.on('message', () => {
  process.send!(seen);
  seen = nothing();
});
process.on('disconnect', () => process.exit());

function serve(socket: Socket): void {
  let rest: Buffer = Buffer.alloc(0); // of a request that came in two pieces
  socket.on('error', () => socket.destroy());
  socket.on('data', (data: Buffer) => {
    const bytes = rest.length === 0 ? data : Buffer.concat([rest, data]);
    let [at, requests] = [0, 0];
    for (let found = bytes.indexOf(end); found !== -1; found = bytes.indexOf(end, at)) {
      at = found + end.length;
      requests++;
    }
    rest = bytes.subarray(at);
    if (requests === 0) return;
    if (seen.firstAt === 0) begin();
    if (latencyMs === 0) reply(socket, requests);
    else setTimeout(reply, latencyMs, socket, requests);
  });
}

function reply(socket: Socket, requests: number): void {
  if (!socket.writable) return;
  socket.write(answer.repeat(requests));
  seen.lastAt = Date.now();
  seen.answers += requests;
  const tenth = Math.floor((seen.lastAt - seen.firstAt) / 100);
  while (seen.tenths.length <= tenth) seen.tenths.push(0);
  seen.tenths[tenth]! += requests;
  seen.cpu = cpu() - cpuAtFirst;
}

function begin(): void {
  seen.firstAt = Date.now();
  cpuAtFirst = cpu();
}

function cpu(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

function nothing(): Seen {
  return { firstAt: 0, lastAt: 0, cpu: 0, answers: 0, tenths: [] };
}
