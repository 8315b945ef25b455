import { openLedger } from '../../src/ledger/ledger.ts';
import { haltRules } from '../../src/ledger/thresholds.ts';
import { createLogger } from '../../src/logger.ts';
import { targetOf } from '../../src/model/target.ts';
import { sharedQueueName } from '../../src/queue/queues.ts';
import { addressFromUrl } from '../../src/redis/address.ts';
import { connectLedger, openQueueConnection, ready } from '../../src/redis/connect.ts';
import { fixedToken } from '../../src/token/fixed-token.ts';
import { Parts } from '../../src/worker/parts.ts';
import { Recoverer } from '../../src/worker/recoverer.ts';
import { openService } from '../../src/worker/service.ts';
import { forgetDoubt } from './forget-doubt.ts';
import { forgetMarks } from './forget-marks.ts';

// A worker that forgets: the marks of dead holders, or that Redis has lost something. What a storm shows of it, and not of the real one,
// is what they are for. Takes the settings it needs from the variables of the real one and runs until it is killed.

const { REDIS_URL, EXPUNGE_BASE_URL, EXPUNGE_ACCOUNT, EXPUNGE_TOKEN } = process.env;
const address = addressFromUrl(REDIS_URL!, true);
const redis = connectLedger(address);
await ready(redis, address);
const log = createLogger({ level: 'info', format: 'json', stderr: process.stderr });
const forget = process.env.FORGET === 'doubt' ? forgetDoubt : forgetMarks;
const ledger = forget(openLedger(redis, haltRules));
const target = targetOf(EXPUNGE_BASE_URL!, EXPUNGE_ACCOUNT!);
const service = openService({
  ledger,
  target,
  log,
  queueConnection: openQueueConnection(address),
  queueName: sharedQueueName,
  token: fixedToken(EXPUNGE_TOKEN!, 'EXPUNGE_TOKEN'),
  connection: { requestTimeoutMs: 500, ca: null, proxy: null, strictConnections: false },
  maxConcurrency: 32,
  rate: null,
  burst: null,
  separateLimits: false,
  retryDelaysMs: [200, 200, 200, 200, 200],
  unreachableTimeoutMs: 60_000,
  stopFile: null,
});
const recoverer = new Recoverer({ ledger, enqueuer: service.enqueuer, fp: target.fp, log });
await new Parts(service.parts, log).start(new AbortController().signal);
log.info({}, 'ready');
setInterval(() => void recoverer.recover().catch(() => {}), 1_000);
