import { readCertificates } from '../errors.ts';
import type { Target } from '../model/target.ts';
import type { Session } from '../operations/session.ts';
import { openToken } from '../token/open-token.ts';
import type { Token } from '../token/token.ts';
import type { ServiceOptions } from '../worker/service.ts';
import type { Invocation } from './command.ts';

/** The token for the API, and the certificate authorities to trust for it. */
export type Credentials = { token: Token; ca: string | null };

/** Opens the source of the token, and reads `--ca-file`. Throws CREDENTIALS or USAGE if a setting or file is unusable. */
export function readCredentials({ config, env }: Pick<Invocation, 'config' | 'env'>): Credentials {
  const ca = readAuthorities(config);
  return { ca, token: openToken(config, { env, ca, clock: () => performance.now(), random: Math.random }) };
}

/** Reads the file of `--ca-file`; null without one. Throws USAGE if it holds no certificates. */
export function readAuthorities({ caFile }: Invocation['config']): string | null {
  return caFile === undefined ? null : readCertificates('--ca-file', caFile);
}

/** The options of a process that deletes, from the settings. */
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
    connection: {
      requestTimeoutMs: config.requestTimeoutMs,
      ca,
      proxy: config.proxy ?? null,
    },
    maxConcurrency: config.maxConcurrency,
    retryDelaysMs: config.retryDelays,
    unreachableTimeoutMs: config.unreachableTimeoutMs,
    stopFile: config.stopFile ?? null,
  };
}
