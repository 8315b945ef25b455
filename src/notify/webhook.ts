import { createHash, createHmac } from 'node:crypto';
import { type Route, sendOnce, statusProblem } from '../http/send-once.ts';
import type { OutboxEvent } from '../ledger/outbox.ts';

/** A receiver of events. `secrets`: keys of the signature, several during a replacement, none = unsigned. */
export type Receiver = { url: string; secrets: readonly Buffer[]; route: Route };

const idleMs = 15_000;

/** These statuses refuse this event; other refusals, like 401 or 404, are about the receiver, and may pass. */
const refusals = [400, 413, 422];

/**
 * Posts an event (https://www.standardwebhooks.com). Returns '' or why it was not accepted, without the path of the URL, which is often a secret.
 * `isRefused`: whether the receiver does not want this event. `nowMs`: ms since 1970.
 */
export async function postEvent(
  receiver: Receiver,
  { id, ...event }: OutboxEvent,
  nowMs: number,
  signal: AbortSignal,
): Promise<{ problem: string; isRefused: boolean }> {
  const body = JSON.stringify(event);
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signature = signWebhook(receiver.secrets, id, timestamp, body);
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(signature === '' ? {} : { 'webhook-signature': signature }),
  };
  const request = { method: 'POST', url: receiver.url, headers, body, idleMs, signal } as const;
  try {
    const status = await sendOnce(receiver.route, request);
    return { problem: statusProblem(status), isRefused: refusals.includes(status) };
  } catch (error) {
    return { problem: (error as Error).message, isRefused: false };
  }
}

/** The signature header of version 1 of the standard: `v1,<base64>`, one for each secret; '' without secrets. Pure. */
export function signWebhook(secrets: readonly Buffer[], id: string, timestamp: string, body: string): string {
  const sign = (secret: Buffer) => createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64');
  return secrets.map((secret) => `v1,${sign(secret)}`).join(' ');
}

/** The name of a receiver in Redis, which must not contain its URL. */
export function receiverKey(url: string): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 16);
}
