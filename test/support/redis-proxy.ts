import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { RedisOptions } from 'ioredis';
import { testRedisAddress } from './redis.ts';

/** A way to the Redis of the tests that can break, and be long. */
export type RedisProxy = {
  readonly url: string;
  /** Commands that have come by so far. */
  readonly commands: number;
  /** Called with the number of each command, counted from 1, before it is passed on. */
  onCommand: (n: number) => void;
  /** The round trip that it adds, in ms; may change at any time. */
  roundTripMs: number;
  /** Drops all connections and takes no new ones. */
  cut(): void;
  restore(): void;
  close(): Promise<void>;
};

/** `options`: of another Redis than that of the tests. */
export async function openRedisProxy(options: RedisOptions = testRedisAddress().options): Promise<RedisProxy> {
  const pairs = new Set<Socket>();
  let [isCut, commands] = [false, 0];
  const server = createServer({ noDelay: true }, (client) => {
    if (isCut) return void client.destroy();
    const upstream = options.path ? connect(options.path) : connect(options.port!, options.host!);
    const count = countCommands(() => proxy.onCommand(++commands));
    const [there, back] = [delayed(upstream, proxy), delayed(client, proxy)];
    client.on('data', (bytes) => {
      count(bytes);
      there(bytes);
    });
    upstream.on('data', back);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      pairs.add(one);
      one.on('error', () => {});
      one.on('close', () => {
        pairs.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy: RedisProxy = {
    url: urlThrough((server.address() as AddressInfo).port, options),
    get commands() {
      return commands;
    },
    onCommand: () => {},
    roundTripMs: 0,
    cut: () => {
      isCut = true;
      for (const socket of pairs) socket.destroy();
    },
    restore: () => {
      isCut = false;
    },
    close: async () => {
      proxy.cut();
      server.close();
      await once(server, 'close');
    },
  };
  return proxy;
}

/** Returns a function that writes to the socket after half of the round trip, in order. */
function delayed(to: Socket, way: Pick<RedisProxy, 'roundTripMs'>): (bytes: Buffer) => void {
  const onTheWay: { atMs: number; bytes: Buffer }[] = [];
  const arrive = () => {
    while (onTheWay.length > 0 && onTheWay[0]!.atMs <= performance.now()) {
      const { bytes } = onTheWay.shift()!;
      if (to.writable) to.write(bytes);
    }
    if (onTheWay.length > 0) setTimeout(arrive, onTheWay[0]!.atMs - performance.now());
  };
  return (bytes) => {
    if (onTheWay.length === 0 && way.roundTripMs === 0) return void to.write(bytes);
    const atMs = Math.max(onTheWay.at(-1)?.atMs ?? 0, performance.now() + way.roundTripMs / 2);
    onTheWay.push({ atMs, bytes });
    if (onTheWay.length === 1) arrive();
  };
}

function urlThrough(port: number, { username, password, db }: RedisOptions): string {
  const login = password ? `${username ?? ''}:${encodeURIComponent(password)}@` : '';
  return `redis://${login}127.0.0.1:${port}/${db ?? 0}`;
}

/** Reads what a client sends (arrays of bulk strings) and calls `next` at the beginning of each command. */
function countCommands(next: () => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let [parts, skip] = [0, 0];
  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    for (;;) {
      if (skip > 0) {
        const taken = Math.min(skip, rest.length);
        skip -= taken;
        rest = rest.subarray(taken);
      }
      const end = rest.indexOf('\r\n');
      if (skip > 0 || end < 0) return;
      const number = Number(rest.toString('latin1', 1, end));
      rest = rest.subarray(end + 2);
      if (parts === 0) {
        parts = number;
        next();
      } else {
        parts--;
        skip = number + 2;
      }
    }
  };
}
