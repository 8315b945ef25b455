import { describe, expect, it } from 'vitest';
import { openReceivers } from '../../../src/notify/receivers.ts';
import { receiverKey, signWebhook } from '../../../src/notify/webhook.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const [one, two] = ['https://a.example.com/hook/geheim', 'https://b.example.com/hook'];
const settings = { notify: [one, two], notifySecretFile: undefined, proxy: undefined, allowHttp: undefined };

describe('the signature of an event', () => {
  it('is that of the example of Standard Webhooks', () => {
    const body = '{"test": 2432232314}';
    const { secrets } = openReceivers(settings, { EXPUNGE_NOTIFY_SECRET: secret })[0]!;
    expect(signWebhook(secrets, 'msg_p5jXN8AQM9LWM0D4loKWxJek', '1614265330', body)).toBe(
      'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    );
  });

  it('is one for each secret while one is replaced, and none without a secret', () => {
    const keys = [Buffer.alloc(24, 1), Buffer.alloc(24, 2)];
    const both = signWebhook(keys, 'id', '1', '{}');
    expect(both).toBe(keys.map((key) => signWebhook([key], 'id', '1', '{}')).join(' '));
    expect(signWebhook([], 'id', '1', '{}')).toBe('');
  });
});

describe('receivers', () => {
  it('are each known by a name without their path, and in Redis by a hash', () => {
    const receivers = openReceivers({ ...settings, notify: [one, two, one] }, {});
    expect(receivers.map(({ label }) => label)).toEqual([
      'https://a.example.com (receiver 1)',
      'https://b.example.com (receiver 2)',
    ]);
    expect(receivers[0]!.key).toBe(receiverKey(one));
    expect(receivers[0]!.key).toMatch(/^[0-9a-f]{16}$/);
    expect(openReceivers({ ...settings, notify: undefined }, {})).toEqual([]);
  });

  it('share a secret, or have one each', () => {
    const secretsWith = (text: string) =>
      openReceivers(settings, { EXPUNGE_NOTIFY_SECRET: text }).map(({ secrets }) => secrets.length);
    expect(secretsWith(secret)).toEqual([1, 1]);
    expect(secretsWith(`${secret}\n${secret} ${secret}\n`)).toEqual([1, 2]);
    expect(() => secretsWith(`${secret}\n${secret}\n${secret}`)).toThrow('for each of the 2 URLs, got 3');
  });

  it.each(['geheim', 'whsec_', 'whsec_geheim', `whsec_${'A'.repeat(100)}`, `${secret} geheim`])(
    'take no secret that the scheme does not allow, and do not show it: %s',
    (text) => {
      const open = () => openReceivers(settings, { EXPUNGE_NOTIFY_SECRET: text });
      expect(open).toThrow('EXPUNGE_NOTIFY_SECRET, line 1: expected whsec_ and 24 to 64 bytes in base64');
      expect(open).not.toThrow(/geheim/);
    },
  );

  it('are refused behind http on another machine', () => {
    const open = (allowHttp?: string) => openReceivers({ ...settings, notify: ['http://hook/geheim'], allowHttp }, {});
    expect(() => open()).toThrow(
      '--notify http://hook: over http an attacker in the network could read and forge events',
    );
    expect(() => open('hook')).not.toThrow();
  });
});
