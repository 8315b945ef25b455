import type { ListenAddress } from '../../config/parse-setting.ts';
import type { Log } from '../../logger.ts';
import { sharedQueueName } from '../../queue/queue.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { Part, Parts } from '../parts.ts';
import type { Service } from '../service.ts';
import { openMetrics } from './metrics.ts';
import { openReadiness } from './readiness.ts';
import { type Build, openLook } from './seen.ts';
import { httpPart } from './serve.ts';
import { createApp } from './server.ts';

export type HttpOptions = {
  build: Build;
  service: Service;
  redis: RedisClient;
  /** Why there is no connection to it, as far as it is known; '' while there is one. */
  trouble: () => string;
  fp: string;
  /** Of all parts of the process. */
  state: () => Parts['state'];
  log: Log;
};

/** The part of a worker that answers probes and scrapes. */
export function openHttp(
  address: ListenAddress,
  { build, service, redis, trouble, fp, state, log }: HttpOptions,
): Part {
  const clock = () => performance.now();
  const { token, roads } = service;
  const readiness = openReadiness({
    ...{ state, redis, trouble, fp, token, clock },
    refused: () => service.refused,
    hold: () => roads.hold,
  });
  const metrics = openMetrics(openLook({ build, service, redis, fp, queueName: sharedQueueName, clock }));
  return httpPart(address, createApp({ readiness, metrics, log }), log);
}
