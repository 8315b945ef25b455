import { randomBytes } from 'node:crypto';

/** The access tokens the sandbox accepts: one that never expires and those it issued. */
export type Tokens = {
  accepts(authorization: string | undefined): boolean;
  issue(): string;
  revokeIssued(): void; // they are refused from now on, as if expired
};

type TokenOptions = { token: string; lifeSeconds: number; now: () => number };

export function createTokens({ token, lifeSeconds, now }: TokenOptions): Tokens {
  const expiries = new Map<string, number>();
  const always = `Bearer ${token}`;
  return {
    accepts: (authorization) => authorization === always || isIssued(authorization ?? ''),
    issue() {
      dropExpired(expiries, now());
      const issued = randomBytes(24).toString('base64url');
      expiries.set(issued, now() + lifeSeconds * 1_000);
      return issued;
    },
    revokeIssued: () => expiries.clear(),
  };

  function isIssued(authorization: string): boolean {
    const [scheme, presented = ''] = authorization.split(' ', 2);
    if (scheme?.toLowerCase() !== 'bearer') return false;
    return presented === token || now() < (expiries.get(presented) ?? 0);
  }
}

function dropExpired(expiries: Map<string, number>, now: number): void {
  for (const [token, expiry] of expiries) if (expiry <= now) expiries.delete(token);
}
