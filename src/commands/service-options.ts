import { readFileSync } from 'node:fs';
import type { Token } from '../delete/token.ts';
import { ExpungeError, messageOf } from '../errors.ts';
import type { Target } from '../ledger/target.ts';
import type { ServiceOptions } from '../worker/service.ts';
import type { Invocation } from './command.ts';
import { type Session, whoAmI } from './session.ts';

/** What the settings say about how a process deletes. Throws USAGE if the file of `--ca-file` can't be read. */
export function serviceOptions(
  { config }: Pick<Invocation, 'config'>,
  { ledger, queueConnection }: Session,
  target: Target,
  token: Token,
): Omit<ServiceOptions, 'queueName' | 'log'> {
  return {
    ledger,
    queueConnection,
    target,
    token,
    lane: {
      requestTimeoutMs: config.requestTimeoutMs,
      ca: config.caFile === undefined ? null : readCa(config.caFile),
      proxy: config.proxy ?? null,
      strictConnections: config.strictConnections,
    },
    maxConcurrency: config.maxConcurrency,
    retryDelaysMs: config.retryDelays,
    patienceMs: config.patienceMs,
    who: whoAmI(),
  };
}

function readCa(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ExpungeError('USAGE', `--ca-file ${path}: ${messageOf(error)}`, { cause: error });
  }
}
