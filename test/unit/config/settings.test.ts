import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { futureMoment } from '../../../src/config/parse-setting.ts';
import { loadConfig } from '../../../src/config/read-config.ts';
import { type SettingName, settings, settingText, shownSetting } from '../../../src/config/settings.ts';

const folder = mkdtempSync(join(tmpdir(), 'expunge-config-'));
afterAll(() => rmSync(folder, { recursive: true }));

const fileOf = (content: string) => {
  const path = join(folder, 'expunge.json');
  writeFileSync(path, content);
  return path;
};
const load = (parts: Partial<Parameters<typeof loadConfig>[0]> = {}) =>
  loadConfig({ flags: {}, env: {}, configFile: undefined, ...parts });

describe('loadConfig', () => {
  it('prefers flags to variables, variables to the file and the file to defaults', () => {
    const configFile = fileOf('{"column": "file", "account": "file", "rate": "5/s"}');
    const env = { EXPUNGE_COLUMN: 'env', EXPUNGE_ACCOUNT: 'env' };
    const { config, sources } = load({ flags: { column: 'flag' }, env, configFile });
    expect(config).toMatchObject({
      column: 'flag',
      account: 'env',
      rate: [{ count: 5, perMs: 1_000 }],
      maxConcurrency: 64,
    });
    expect(sources).toMatchObject({ column: 'flag', account: 'environment', rate: 'file', maxConcurrency: 'default' });
  });

  it('takes an empty variable as none, whatever the setting: compose and env files hand on what nobody filled in', () => {
    const configFile = fileOf('{"rate": "5/s", "noHeader": true}');
    const named = Object.values(settings).flatMap(({ env }) => env ?? []);
    const env = Object.fromEntries([...named, 'EXPUNGE_CONFIG'].map((name) => [name, '']));
    expect(load({ env, configFile })).toEqual(load({ configFile }));
    expect(load({ env: { EXPUNGE_CONFIG: '' } })).toEqual(load());
    expect(() => load({ flags: { rate: '' } })).toThrow('--rate');
  });

  it('freezes what it returns', () => {
    expect(Object.isFrozen(load().config)).toBe(true);
  });

  it('reads the file that EXPUNGE_CONFIG names', () => {
    const env = { EXPUNGE_CONFIG: fileOf('{"maxConcurrency": 8, "noHeader": true}') };
    expect(load({ env }).config).toMatchObject({ maxConcurrency: 8, noHeader: true });
  });

  it('reads a list from the file as from its flag, and gives lists that mean the same one text', () => {
    const configFile = fileOf('{"onStatus": ["409=retry", "404=failed"]}');
    expect(load({ configFile }).config.onStatus).toBe('404=failed,409=retry');
    expect(load({ flags: { onStatus: '404=failed, 409=retry' } }).config.onStatus).toBe('404=failed,409=retry');
    expect(() => load({ env: { EXPUNGE_ON_STATUS: '204=failed' } })).toThrow('EXPUNGE_ON_STATUS: 204 cannot be failed');
  });

  it('says which flag, variable or name of the file is wrong', () => {
    expect(() => load({ flags: { rate: 'fast' } })).toThrow('--rate: expected a rate like');
    expect(() => load({ env: { EXPUNGE_RATE: '0' } })).toThrow('EXPUNGE_RATE: expected a rate like');
    expect(() => load({ configFile: fileOf('{\n  "rate": -1}') })).toThrow('.json:2: "rate": expected');
    expect(() => load({ configFile: fileOf('{\n\n"rtae": "1/s"}') })).toThrow('.json:3: "rtae" is not a setting. Did');
    expect(() => load({ configFile: fileOf('{\n"column": false}') })).toThrow('.json:2: "column": expected text');
  });

  it('refuses a variable it does not know and suggests the nearest', () => {
    expect(() => load({ env: { EXPUNGE_BASEURL: 'x' } })).toThrow(
      'EXPUNGE_BASEURL: no such setting. Did you mean EXPUNGE_BASE_URL?',
    );
  });

  it.each(['EXPUNGE_SERVICE_HOST', 'EXPUNGE_SERVICE_PORT_HTTP', 'EXPUNGE_PORT', 'EXPUNGE_REDIS_PORT_6379_TCP_ADDR'])(
    'does not mind %s, which Kubernetes sets beside a Service',
    (name) => {
      expect(() => load({ env: { [name]: 'x' } })).not.toThrow();
    },
  );

  it('refuses a name in the file it does not know and suggests the nearest', () => {
    expect(() => load({ configFile: fileOf('{"baseURL": "x"}') })).toThrow('is not a setting. Did you mean baseUrl?');
    expect(() => load({ configFile: fileOf('{"token": "x"}') })).toThrow('"token" is not a setting.');
  });

  it.each([
    ['{"protect": false}', '"protect": expected text, got false'],
    ['{"stopFile": 1}', '"stopFile": expected text, got a number'],
    ['{"tokenFile": ["geheim", "b"]}', '"tokenFile": expected text, got a list'],
    ['{"tokenCommand": ["vault", "geheim"]}', '"tokenCommand": expected text, got a list'],
    ['{"column": null}', '"column": expected text, got null'],
    ['{"column": {"geheim": 1}}', '"column": expected text, got an object'],
    ['{"limit": true}', '"limit": expected text or a number, got true'],
    ['{"noHeader": 0}', '"noHeader": expected true or false, got a number'],
    ['{"rate": ["200/s", 1]}', '"rate": expected text or a list of them, got a list'],
    ['{"canary": [1, true]}', '"canary": expected text or a number or a list of them, got a list'],
  ])('refuses a value of a kind that the setting does not take, without showing it: %s', (content, words) => {
    const attempt = () => load({ configFile: fileOf(content) });
    expect(attempt).toThrow(words);
    expect(attempt).toThrow(expect.objectContaining({ code: 'USAGE', next: expect.stringContaining('quotes') }));
    expect(attempt).not.toThrow(/geheim/);
  });

  it('takes each value in the kind that JSON has for it, and as text', () => {
    const typed = '{"limit": 5, "noHeader": true, "canary": [1, 10], "expectCount": 250, "http": 9464}';
    const quoted = '{"limit": "5", "noHeader": "true", "canary": "1,10", "expectCount": "250", "http": "9464"}';
    const { config } = load({ configFile: fileOf(typed) });
    expect(config).toMatchObject({ limit: 5, noHeader: true, canary: [1, 10], expectCount: '250' });
    expect(load({ configFile: fileOf(quoted) }).config).toEqual(config);
    expect(load({ configFile: fileOf('{"protect": "false"}') }).config.protect).toBe('false');
  });

  it('refuses a name that stands twice in one object, at any depth, and names it', () => {
    expect(() => load({ configFile: fileOf('{"limit": 1, "limit": 5000}') })).toThrow(
      'expected a JSON object with settings, it has "limit" twice in one object (line 1 column 14)',
    );
    const sources = '{"inbox": {"glob": "a/*.csv", "glob": "b/*.csv"}}';
    expect(() => load({ configFile: fileOf(`{"sources": ${sources}}`) })).toThrow('it has "glob" twice in one object');
    expect(() => load({ configFile: fileOf('{"sources": {"a": {"glob": "a"}, "b": {"glob": "b"}}}') })).not.toThrow();
  });

  it('skips a byte order mark, as in lists', () => {
    expect(load({ configFile: fileOf('\uFEFF{"limit": 5}') }).config.limit).toBe(5);
  });

  it('reads a list in the file as its flag would have it', () => {
    const configFile = fileOf('{"retryDelays": ["1s", "2s", "3s", "4s", "5s"]}');
    expect(load({ configFile }).config.retryDelays).toEqual([1_000, 2_000, 3_000, 4_000, 5_000]);
  });

  it('reads the sources of schedules, which stand in the file only', () => {
    const { config } = load({ configFile: fileOf('{"rate": "5/s", "sources": {"inbox": {"glob": "in/*.csv"}}}') });
    expect(config.sources).toEqual({ inbox: { kind: 'glob', glob: 'in/*.csv', archive: null, settleMs: 5_000 } });
    expect(load().config.sources).toEqual({});
    expect(() => load({ configFile: fileOf('{"sources": {"inbox": {"glb": "x"}}}') })).toThrow(
      '"sources": "inbox": expected one of {"glob"',
    );
  });

  it('does not repeat what stands in a file that is not JSON: it may be a token', () => {
    const attempt = () => load({ configFile: fileOf('eyJhbGciOiJIUzI1NiJ9.secret') });
    expect(attempt).toThrow('expected a JSON object with settings, it is not JSON (line 1 column 1)');
    expect(attempt).not.toThrow(/eyJ|secret/);
  });

  it('refuses a file that holds something else than an object, or is not there', () => {
    expect(() => load({ configFile: fileOf('[]') })).toThrow('expected a JSON object');
    expect(() => load({ configFile: join(folder, 'nowhere.json') })).toThrow('settings: not found');
  });
});

describe('the base URL', () => {
  const baseUrlOf = (value: string) => load({ flags: { baseUrl: value } }).config.baseUrl;

  it.each([
    ['https://api.example.com/', 'https://api.example.com'],
    ['HTTPS://API.Example.com:443/x//', 'https://api.example.com/x'],
    ['http://[::1]:8080', 'http://[::1]:8080'],
    ['http://API.example.com.:80', 'http://api.example.com.'], // another name by the rules of URLs, so another target
    ['http://localhost:8080', 'http://localhost:8080'],
  ])('reads %s as %s', (value, normal) => {
    expect(baseUrlOf(value)).toBe(normal);
  });

  it.each([
    ['api.example.com', 'expected a URL like https://api.example.com'],
    ['ftp://api.example.com', 'got "ftp:"'],
    ['https://ana:secret@api.example.com', 'cannot hold a user name or password'],
    ['https://api.example.com/?token=x', 'cannot hold a query'],
    ['https://api.example.com/?', 'cannot hold a query'],
    ['https://api.example.com/#x', 'cannot hold a fragment'],
  ])('refuses %s', (value, words) => {
    expect(() => baseUrlOf(value)).toThrow(words);
  });
});

describe('a moment to come', () => {
  const at = (value: string, now: string) => new Date(futureMoment(value, Date.parse(now))).toISOString().slice(0, 16);

  it.each([
    ['06:00', '2026-11-24T05:59Z', '2026-11-24T06:00'],
    ['06:00', '2026-11-24T06:00Z', '2026-11-25T06:00'],
    ['18:00', '2026-11-24T20:00Z', '2026-11-25T18:00'],
    ['06:00 Europe/Berlin', '2026-11-24T00:00Z', '2026-11-24T05:00'],
    ['02:30 Europe/Berlin', '2027-03-27T23:00Z', '2027-03-28T01:00'], // the clocks jump over it
    ['02:30 Europe/Berlin', '2027-10-30T23:00Z', '2027-10-31T00:30'], // the first of two
    ['2026-11-24T06:00+01:00', '2026-11-24T00:00Z', '2026-11-24T05:00'],
  ])('%s seen at %s is %s', (value, now, expected) => {
    expect(at(value, now)).toBe(expected);
  });

  it.each(['25:00', '6:00', '06:00 Europe/Bonn', 'tomorrow', '2026-11-23', '06:00,07:00'])('is not %s', (value) => {
    expect(() => at(value, '2026-11-24T00:00Z')).toThrow(/expected|is not a time zone/);
  });

  it('is no time to the second, and says which form is', () => {
    expect(() => at('02:43:11', '2026-11-24T00:00Z')).toThrow(
      'expected hours and minutes without seconds, like 06:00 or 06:00 Europe/Berlin, got "02:43:11"',
    );
  });
});

describe('the address to listen on', () => {
  const read = (value: string) => load({ flags: { http: value } }).config.http;

  it.each([
    ['9464', { host: '127.0.0.1', port: 9464 }],
    ['0', { host: '127.0.0.1', port: 0 }],
    ['0.0.0.0:9464', { host: '0.0.0.0', port: 9464 }],
    ['[::]:9464', { host: '::', port: 9464 }],
    ['worker.internal:80', { host: 'worker.internal', port: 80 }],
  ])('reads %s', (value, address) => {
    expect(read(value)).toEqual(address);
  });

  it.each(['', 'http', ':9464', '::1:9464', '65536', '-1', 'http://0.0.0.0:9464', '0.0.0.0:'])(
    'refuses "%s"',
    (value) => {
      expect(() => read(value)).toThrow('--http: expected a port like 9464 (this machine only) or an address like');
    },
  );
});

describe('what is shown of a setting', () => {
  it.each<[SettingName, string, string]>([
    ['tokenCommand', 'vault', 'vault'],
    ['tokenCommand', '/usr/bin/vault read -field=geheim', '/usr/bin/vault ***'],
    ['tokenCommand', 'KEY=geheim vault', 'KEY ***'],
    ['tokenCommand', "printf 'geheim'", 'printf ***'],
    ['tokenCommand', '"geheim"', '***'],
    ['tokenUrl', 'https://auth.example.com/token?key=geheim', 'https://auth.example.com/token?***'],
    ['proxy', 'http://geheim@proxy.example:3128', 'http://***@proxy.example:3128'],
    ['proxy', 'http://ana:geheim@proxy.example:3128', 'http://***@proxy.example:3128'],
    ['rate', '200/s', '200/s'],
  ])('%s %s: %s', (name, value, shown) => {
    expect(shownSetting(name, load({ flags: { [name]: value } }).config[name])).toBe(shown);
  });

  it('nor does a refusal hold a secret', () => {
    for (const [name, value] of [
      ['baseUrl', 'https://ana:ge heim@api.example.com'],
      ['baseUrl', '0ana:geheim@api.example.com'],
      ['proxy', 'http://ana:%zzgeheim@proxy.example'],
      ['proxy', 'ana:geheim@proxy.example'],
      ['tokenUrl', 'https://ana:geheim@auth.example.com'],
    ] as const) {
      expect(() => load({ flags: { [name]: value } }), value).toThrow(/--/);
      expect(() => load({ flags: { [name]: value } }), value).not.toThrow(/heim/);
    }
  });
});

describe('settingText', () => {
  const { config } = load({
    flags: {
      rate: '90/min,100000/day',
      keep: '90s',
      delimiter: 'tab',
      http: '[::]:9464',
      baseUrl: 'https://a.example',
    },
  });

  it.each(Object.keys(settings) as SettingName[])('writes %s so that reading it gives the same value', (name) => {
    const text = settingText(name, config[name]);
    const unset = text === null || text === settings[name].fallback;
    expect(unset ? config[name] : settings[name].parse(text)).toEqual(config[name]);
  });
});
