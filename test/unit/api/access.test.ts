import { describe, expect, it } from 'vitest';
import { addressFilter, crossSiteReason, isNameOfProxy, lastForwarded, type Sender } from '../../../src/api/access.ts';
import { LoginLimit } from '../../../src/api/login-limit.ts';
import { mayAct } from '../../../src/model/role.ts';

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

describe('the Host of a proxy', () => {
  const own = ['expunge.example.com', '[fd00::1]'];
  it.each<[string, readonly string[], string, string, boolean]>([
    ['of this machine, from here', [], '127.0.0.1', 'localhost:9464', true],
    ['of this machine, from here by IPv6', [], '::1', '[::1]:9464', true],
    ['of a site whose name leads here', [], '127.0.0.1', 'evil.example.com:9464', false],
    ['that only looks like this machine', [], '127.0.0.1', 'localhost.example.com', false],
    ['that is missing', [], '127.0.0.1', '', false],
    ['that is no name', [], '127.0.0.1', 'localhost/@evil.example.com', false],
    ['of any name, from elsewhere', [], '10.0.0.7', 'evil.example.com', true],
    ['that is stated', own, '127.0.0.1', 'Expunge.example.com:443', true],
    ['that is stated, as an address', own, '10.0.0.7', '[fd00::1]:443', true],
    ['that is not among those stated', own, '127.0.0.1', 'evil.example.com', false],
    ['that is not among those stated, from elsewhere', own, '10.0.0.7', 'evil.example.com', false],
  ])('%s', (_, hosts, address, host, isBelieved) => {
    expect(isNameOfProxy(hosts, address, host)).toBe(isBelieved);
  });
});

describe('the person behind a proxy', () => {
  const isTrusted = addressFilter(['10.0.0.0/8', '127.0.0.1']);
  it.each([
    ['is the last who is no proxy', '203.0.113.9, 198.51.100.4, 10.0.0.7', '198.51.100.4'],
    ['is not who they say in front', '198.51.100.4,203.0.113.9', '203.0.113.9'],
    ['may come with a port', '203.0.113.9:4711', '203.0.113.9'],
    ['may come by IPv6', '[2001:db8::7]:4711, 127.0.0.1', '2001:db8::7'],
    ['is nobody for a text that is no address', '203.0.113.9, unknown', null],
    ['is nobody where only proxies are named', '10.0.0.8, 10.0.0.7', null],
    ['is nobody without the header', '', null],
  ])('%s', (_, header, address) => {
    expect(lastForwarded(header, isTrusted)).toBe(address);
  });
});

describe('failed logins', () => {
  it('are counted by address, for five minutes', () => {
    let now = 0;
    const limit = new LoginLimit(() => now);
    for (let n = 0; n < 10; n++) limit.failed('a');
    expect([limit.waitOf('a'), limit.waitOf('b')]).toEqual([300, 0]);
    now = 299_999;
    expect(limit.waitOf('a')).toBe(1);
    now = 300_000;
    expect(limit.waitOf('a')).toBe(0);
  });

  it('lock nobody else out, from however many addresses they come', () => {
    const limit = new LoginLimit(() => 0);
    for (let n = 0; n < 20_000; n++) limit.failed(`10.0.${n >> 8}.${n & 255}`);
    expect(limit.waitOf('c')).toBe(0);
  });

  it('count for the whole /64 of an IPv6 address, and for no other', () => {
    const limit = new LoginLimit(() => 0);
    for (let n = 0; n < 10; n++) limit.failed(`2001:db8:0:7::${n.toString(16)}`);
    const tried = ['2001:db8:0:7:1:2:3:4', '2001:DB8::7:0:0:0:9', '2001:db8:0:8::1', '::1'];
    expect(tried.map((address) => limit.waitOf(address) > 0)).toEqual([true, true, false, false]);
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
