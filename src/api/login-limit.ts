import { isIPv6 } from 'node:net';

const windowMs = 5 * 60_000;
const maxFailures = 10; // per address, or per IPv6 network of a customer
const maxAddresses = 10_000;

/** Counts failed logins per address for five minutes, so that an attacker at one address does not lock out others. `clock`: monotonic ms. */
export class LoginLimit {
  readonly #clock: () => number;
  readonly #failures = new Map<string, { count: number; until: number }>();

  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Seconds until this address may try again; 0 = now. */
  waitOf(address: string): number {
    const now = this.#clock();
    const own = this.#failures.get(peerOf(address));
    if (own === undefined || own.count < maxFailures) return 0;
    return Math.ceil(Math.max(0, own.until - now) / 1_000);
  }

  /** Counts a failure. The number of addresses is bounded: a new address replaces the address that failed longest ago. */
  failed(address: string): void {
    const now = this.#clock();
    const peer = peerOf(address);
    const own = this.#failures.get(peer);
    this.#failures.delete(peer);
    this.#failures.set(
      peer,
      own !== undefined && own.until > now ? { ...own, count: own.count + 1 } : { count: 1, until: now + windowMs },
    );
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > maxAddresses) this.#failures.delete(oldest!);
  }
}

const groupsOfNetwork = 4;

/** The IPv6 /64 network of an address, because its owner has all of it; an IPv4 address as it is. Pure. */
function peerOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail] = address.split('::');
  const front = head.split(':').filter(Boolean);
  const back = (tail ?? '').split(':').filter(Boolean);
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - front.length - back.length);
  const groups = [...front, ...Array<string>(zeros).fill('0'), ...back];
  return groups
    .slice(0, groupsOfNetwork)
    .map((group) => Number.parseInt(group, 16))
    .join(':');
}
