import { ExpungeError } from '../errors.ts';
import type { Rate } from '../model/rate.ts';
import type { Target } from '../model/target.ts';
import { readCertificates } from '../named-file.ts';
import { openToken } from '../token/open-token.ts';
import type { Token } from '../token/token.ts';
import type { ServiceOptions } from '../worker/service.ts';
import type { Invocation } from './command.ts';
import type { Session } from './session.ts';

/** What the settings say about how a process deletes. */
export function serviceOptions(
  { config }: Pick<Invocation, 'config'>,
  { ledger, queueConnection }: Session,
  target: Target,
  { token, ca }: Credentials,
): Omit<ServiceOptions, 'queueName' | 'log'> {
  return {
    ledger,
    queueConnection,
    target,
    token,
    lane: {
      requestTimeoutMs: config.requestTimeoutMs,
      ca,
      proxy: config.proxy ?? null,
      strictConnections: config.strictConnections,
    },
    maxConcurrency: config.maxConcurrency,
    rate: null,
    burst: null,
    separateLimits: config.separateLimits,
    retryDelaysMs: config.retryDelays,
    patienceMs: config.patienceMs,
    stopFile: config.stopFile ?? null,
  };
}

/** What proves who we are to the API, and who the API is to us. */
export type Credentials = { token: Token; ca: string | null };

/** Opens where the token comes from, and reads the file of `--ca-file`. Throws CREDENTIALS or USAGE where that can't work. */
export function readCredentials({ config, env }: Pick<Invocation, 'config' | 'env'>): Credentials {
  const ca = readAuthorities(config);
  return { ca, token: openToken(config, { env, ca, clock: () => performance.now(), random: Math.random }) };
}

/** The file of `--ca-file`, or null. Throws USAGE where it holds no certificates. */
export function readAuthorities({ caFile }: Invocation['config']): string | null {
  return caFile === undefined ? null : readCertificates('--ca-file', caFile);
}

/** Throws USAGE for a --burst that is a part of no rate: it would bound nothing. */
export function refuseLoneBurst({ config, sources }: Pick<Invocation, 'config' | 'sources'>, known: Rate | null): void {
  if (sources.burst !== 'flag' || (config.rate ?? known) !== null) return;
  throw new ExpungeError('USAGE', '--burst is a part of the rate, and there is none: it would bound nothing', {
    next: 'add --rate, as in --rate 200/s',
  });
}
