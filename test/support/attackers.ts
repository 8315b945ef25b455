import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

// Attackers who are not logged in, as a process of their own: they are other machines, and take none of the time of whoever measures.
// Takes a port and how many connections each kind of attack keeps open, and runs until it is killed.

const blocks = Array<string>(50).fill('x'.repeat(65_536));

/** What one connection of an attacker sends, part by part; after the last one it stays open. */
const attacks: Record<string, () => string[]> = {
  'slow headers': () => ['GET /healthz HTTP/1.1\r\n', ...Array.from({ length: 100 }, (_, n) => `x-${n}: y\r\n`)],
  'slow bodies': () => ['GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n', ...'x'.repeat(100)],
  'slow logins': () => ['POST /login HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n', ...'x'.repeat(100)],
  silent: () => [],
  many: () => ['GET /login HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(20)],
  several: () => Array(100).fill('GET /login HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(10)),
  'huge logins': () => ['POST /login HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\n', ...blocks],
  'huge requests': () => ['POST /api/v1/plans HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\n', ...blocks],
};

const [port, width] = process.argv.slice(2);

/** Keeps one connection open, and opens another one whenever it is closed. */
async function hold(partsOf: () => string[]): Promise<never> {
  for (;;) {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    socket.resume();
    for (const part of partsOf()) {
      if (socket.destroyed) break;
      socket.write(part);
      await sleep(part.length > 1_000 ? 1 : 200);
    }
    for (let waited = 0; waited < 50 && !socket.destroyed; waited++) await sleep(100);
    socket.destroy();
    await sleep(300);
  }
}

for (const partsOf of Object.values(attacks)) for (let n = 0; n < Number(width); n++) void hold(partsOf);
