import { randomBytes } from 'node:crypto';

/** The access tokens the sandbox accepts: one that never expires and those it issued; and the refresh token it takes. */
export type Tokens = {
  accepts(authorization: string | undefined): boolean;
  issue(): string;
  revokeIssued(): void; // they are refused from now on, as if expired
  readonly refreshToken: string; // the only one that is good at the moment
  rotate(presented: string): boolean; // true for that one, which is worth nothing from then on
};

type TokenOptions = { token: string; lifeSeconds: number; oneLiveToken: boolean; now: () => number };

export function createTokens({ token, lifeSeconds, oneLiveToken, now }: TokenOptions): Tokens {
  const expiries = new Map<string, number>();
  const always = `Bearer ${token}`;
  let refreshToken = makeToken();
  return {
    accepts: (authorization) => authorization === always || isIssued(authorization ?? ''),
    issue() {
      dropExpired(expiries, now());
      if (oneLiveToken) expiries.clear();
      const issued = makeToken();
      expiries.set(issued, now() + lifeSeconds * 1_000);
      return issued;
    },
    revokeIssued: () => expiries.clear(),
    get refreshToken() {
      return refreshToken;
    },
    rotate(presented) {
      if (presented !== refreshToken) return false;
      refreshToken = makeToken();
      return true;
    },
  };

  function isIssued(authorization: string): boolean {
    const [scheme, presented = ''] = authorization.split(' ', 2);
    if (scheme?.toLowerCase() !== 'bearer') return false;
    return presented === token || now() < (expiries.get(presented) ?? 0);
  }
}

function makeToken(): string {
  return randomBytes(24).toString('base64url');
}

function dropExpired(expiries: Map<string, number>, now: number): void {
  for (const [token, expiry] of expiries) if (expiry <= now) expiries.delete(token);
}
