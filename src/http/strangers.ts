import type { EventEmitter } from 'node:events';
import type { Server, Socket } from 'node:net';

const limits = {
  connectionsAtMost: 512,
  wholeRequestMs: 10_000, // of a stranger
};
const lingerMs = 1_000; // for the answer to arrive, before what is left of the request ends its connection

type Request = { complete: boolean; socket: Socket };

const members = new WeakSet<Socket>();

/** A request of somebody who is logged in came over this connection: it is none of a stranger any more. */
export function noteMember(socket: Socket): void {
  members.add(socket);
}

/**
 * Keeps those who are not logged in from holding what others need. Where there are too many connections, the peer with most of them loses its
 * oldest one. A stranger has a short time for a whole request, and a connection whose request is not read to its end closes after the answer.
 */
export function boundStrangers(server: Server, { connectionsAtMost, wholeRequestMs } = limits): void {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    const surplus = open.size > connectionsAtMost ? (oldestOfMost(open) ?? socket) : null;
    if (surplus !== null) open.delete(surplus);
    surplus?.destroy();
    socket.once('close', () => open.delete(socket));
  });
  server.on('request', (request: Request, response: EventEmitter) => {
    const end = () => void (request.complete || request.socket.destroy());
    const timer = setTimeout(() => void (members.has(request.socket) || end()), wholeRequestMs).unref();
    response.once('close', () => clearTimeout(timer));
    response.once('finish', () => void (request.complete || setTimeout(end, lingerMs).unref()));
  });
}

/** The oldest connection of the peer that has most; null where all are of members. */
function oldestOfMost(open: ReadonlySet<Socket>): Socket | null {
  const peers = new Map<string, Socket[]>();
  for (const socket of open) {
    if (members.has(socket)) continue;
    const peer = socket.remoteAddress ?? '';
    const known = peers.get(peer);
    if (known === undefined) peers.set(peer, [socket]);
    else known.push(socket);
  }
  let most: readonly Socket[] = [];
  for (const sockets of peers.values()) if (sockets.length > most.length) most = sockets;
  return most[0] ?? null;
}
