import { createSecureContext } from 'node:tls';
import type { Identity, TargetConnectionOptions } from '../delete/send-delete.ts';
import { ExpungeError, messageOf, readCertificates, readNamedFile } from '../errors.ts';
import type { Target } from '../model/target.ts';
import type { Session } from '../operations/session.ts';
import { openToken } from '../token/open-token.ts';
import type { Token } from '../token/token.ts';
import type { ServiceOptions } from '../worker/service.ts';
import type { Invocation } from './command.ts';

/** The certificates for the API: the authorities to trust for it, and our own for an API that wants one. */
export type Certificates = Pick<Required<TargetConnectionOptions>, 'ca' | 'identity'>;

/** The token and the certificates for the API. */
export type Credentials = Certificates & { token: Token };

/** Opens the source of the token, and reads the certificates. Throws CREDENTIALS or USAGE if a setting or file is unusable. */
export function readCredentials({ config, env }: Pick<Invocation, 'config' | 'env'>): Credentials {
  const certificates = readApiCertificates(config);
  const { ca } = certificates;
  return {
    ...certificates,
    token: openToken(config, { env, ca, clock: () => performance.now(), random: Math.random }),
  };
}

/** Reads the files of `--ca-file`, `--cert-file` and `--key-file`. Throws CREDENTIALS or USAGE if one is unusable. */
export function readApiCertificates({ caFile, certFile, keyFile }: Invocation['config']): Certificates {
  const ca = caFile === undefined ? null : readCertificates('--ca-file', caFile);
  if (certFile === undefined && keyFile === undefined) return { ca, identity: null };
  if (certFile === undefined || keyFile === undefined)
    throw new ExpungeError('USAGE', 'expected --cert-file and --key-file, got one of them');
  return { ca, identity: readIdentity(certFile, keyFile) };
}

function readIdentity(certFile: string, keyFile: string): Identity {
  const cert = readCertificates('--cert-file', certFile);
  const key = readNamedFile('--key-file', keyFile, 'CREDENTIALS');
  try {
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (error) {
    const found = messageOf(error);
    throw new ExpungeError('USAGE', `--key-file ${keyFile}: expected the key of ${certFile} in PEM (${found})`);
  }
}

/** The options of a process that deletes, from the settings. */
export function serviceOptions(
  { config }: Pick<Invocation, 'config'>,
  { ledger, queueConnection }: Session,
  target: Target,
  { token, ca, identity }: Credentials,
): Omit<ServiceOptions, 'queueName' | 'log'> {
  return {
    ledger,
    queueConnection,
    target,
    token,
    connection: {
      requestTimeoutMs: config.requestTimeoutMs,
      ca,
      identity,
      proxy: config.proxy ?? null,
    },
    maxConcurrency: config.maxConcurrency,
    retryDelaysMs: config.retryDelays,
    unreachableTimeoutMs: config.unreachableTimeoutMs,
    stopFile: config.stopFile ?? null,
  };
}
