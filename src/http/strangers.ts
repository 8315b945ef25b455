import type { EventEmitter } from 'node:events';
import type { Server, Socket } from 'node:net';

const limits = {
  maxConnections: 512,
  wholeRequestMs: 10_000, // for a client that is not logged in
};
const lingerMs = 1_000; // the time for the answer to arrive, before an unfinished request ends its connection
const shortBytes = 1_048_576; // a body of this size is short: its rest may come after the answer, and the next request after that
const maxWaiting = 10; // requests on one connection; browsers and our own client send none before the answer to the last request

type Request = { complete: boolean; socket: Socket; headers: { 'content-length'?: string } };
type Listener = (request: Request, response: EventEmitter) => void;

const members = new WeakSet<Socket>();

/** Records that a logged-in user sent a request over this connection, so its client is no longer a stranger. */
export function noteMember(socket: Socket): void {
  members.add(socket);
}

/**
 * Keeps strangers, who are not logged in, from holding resources that others need. If there are too many connections, the peer with most of them
 * loses its oldest. Each connection has its requests answered one at a time. A stranger has a short time for a whole request. A connection whose
 * request does not end soon after its answer is closed, and the rest of a stranger's long request is not read.
 */
export function boundStrangers(server: Server, { maxConnections, wholeRequestMs } = limits): void {
  answerInTurn(server);
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    const surplus = open.size > maxConnections ? (oldestOfMost(open) ?? socket) : null;
    if (surplus !== null) open.delete(surplus);
    surplus?.destroy();
    socket.once('close', () => open.delete(socket));
  });
  server.on('request', (request: Request, response: EventEmitter) => {
    const { socket } = request;
    const end = () => void (request.complete || socket.destroy());
    const timer = setTimeout(() => void (members.has(socket) || end()), wholeRequestMs).unref();
    response.once('close', () => clearTimeout(timer));
    response.once('finish', () => {
      if (request.complete) return;
      if (isLong(request) && !members.has(socket)) stopReading(socket);
      setTimeout(end, lingerMs).unref();
    });
  });
}

/** Whether a body is long, or of unknown length. */
function isLong({ headers }: Request): boolean {
  return Number(headers['content-length'] ?? Number.POSITIVE_INFINITY) > shortBytes;
}

/** Leaves further data in the buffers of the system. */
function stopReading(socket: Socket): void {
  socket.on('resume', () => void socket.pause()); // Node and the adapter start to read again, to throw the data away
  socket.pause();
}

/**
 * Lets the present request listeners answer the requests of each connection one at a time, so a client that sends many at once waits for its own
 * requests. A connection on which too many wait is closed.
 */
function answerInTurn(server: Server): void {
  const answers = server.listeners('request') as Listener[];
  server.removeAllListeners('request');
  const turns = new WeakMap<Socket, (() => void)[]>();
  const endTurn = (socket: Socket) => {
    const next = turns.get(socket)?.shift();
    if (next === undefined || socket.destroyed) turns.delete(socket);
    else next();
  };
  server.on('request', (request: Request, response: EventEmitter) => {
    const { socket } = request;
    const waiting = turns.get(socket);
    const begin = () => {
      response.once('close', () => endTurn(socket));
      for (const answer of answers) answer(request, response);
    };
    if (waiting === undefined) {
      turns.set(socket, []);
      begin();
    } else if (waiting.push(begin) > maxWaiting) socket.destroy();
  });
}

/** The oldest connection of the peer with most connections; null if all connections are of logged-in users. */
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
