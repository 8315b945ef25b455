import { describe, expect, it } from 'vitest';
import { addressFilter, crossSiteReason, type Sender } from '../../../src/api/access.ts';
import { LoginLimit } from '../../../src/api/login-limit.ts';
import { mayAct } from '../../../src/api/token-store.ts';

describe('a request', () => {
  const own: Sender = { method: 'POST', site: 'same-origin', origin: 'http://h:1', host: 'h:1', isAmbient: true };
  it.each<[string, Partial<Sender>, boolean]>([
    ['of a page of this server', {}, true],
    ['of an old browser, which sends only its origin', { site: null }, true],
    ['of a program with a token', { site: null, origin: null, isAmbient: false }, true],
    ['that changes nothing', { method: 'GET', site: 'cross-site', origin: null }, true],
    ['of another site', { site: 'cross-site', origin: 'https://evil.example.com' }, false],
    ['of another port', { site: 'same-site', origin: 'http://h:2' }, false],
    ['of another site with a token', { site: 'cross-site', isAmbient: false }, false],
    ['of a page in a sandbox', { site: null, origin: 'null' }, false],
    ['that says nothing, with a cookie', { site: null, origin: null }, false],
  ])('%s', (_, facts, isAllowed) => {
    expect(crossSiteReason({ ...own, ...facts }) === null).toBe(isAllowed);
  });
});

describe('the addresses of a proxy', () => {
  it('are single ones and networks, of both kinds', () => {
    const isTrusted = addressFilter(['10.0.0.7', '192.168.0.0/16', 'fd00::/8']);
    const all = ['10.0.0.7', '10.0.0.8', '192.168.3.4', '193.168.3.4', 'fd00::1', 'fe80::1', '', 'x'];
    expect(all.filter(isTrusted)).toEqual(['10.0.0.7', '192.168.3.4', 'fd00::1']);
  });

  it.each(['proxy', '10.0.0', '10.0.0.7/33', '10.0.0.7/x', ''])('are refused as %j', (text) => {
    expect(() => addressFilter([text])).toThrow(/expected an address/);
  });
});

describe('failed logins', () => {
  it('are counted by address and all together, for five minutes', () => {
    let now = 0;
    const limit = new LoginLimit(() => now);
    for (let n = 0; n < 10; n++) limit.failed('a');
    expect([limit.waitOf('a'), limit.waitOf('b')]).toEqual([300, 0]);
    now = 299_999;
    expect(limit.waitOf('a')).toBe(1);
    now = 300_000;
    expect(limit.waitOf('a')).toBe(0);
    for (let n = 0; n < 300; n++) limit.failed(`10.0.${n >> 8}.${n & 255}`);
    expect(limit.waitOf('c')).toBe(300);
  });
});

describe('a role', () => {
  it('may do what those before it may', () => {
    expect([
      mayAct('read', 'operate'),
      mayAct('operate', 'read'),
      mayAct('operate', 'admin'),
      mayAct('admin', 'admin'),
    ]).toEqual([false, true, false, true]);
  });
});
