import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { server } from '../../../../src/commands/command.ts';
import { readCommandLine } from '../../../../src/commands/line/command-line.ts';
import { commands } from '../../../../src/commands/line/commands.ts';
import { readDefinition } from '../../../../src/commands/schedules/schedule-add.ts';
import { loadConfig } from '../../../../src/config/read-config.ts';
import { type Config, type SettingName, settings, settingText } from '../../../../src/config/settings.ts';
import { parseStoredSettings, scheduledSettings } from '../../../../src/schedule/schedule.ts';

/** A value of every setting that is not its default. */
const samples: Record<SettingName, string> = {
  baseUrl: 'https://api.example.com',
  account: 'acme',
  resource: 'views',
  resourceColumn: 'kind',
  format: 'csv',
  column: 'old_id',
  noHeader: 'true',
  delimiter: 'tab',
  comments: '#',
  limit: '10',
  protect: 'never.txt',
  allowIdChars: '/ #',
  allowPlaceholders: 'true',
  expectRejected: 'true',
  allowEmpty: 'true',
  protectColumn: 'key',
  expectUnprotected: 'true',
  idPattern: '[0-9]+',
  expectProtected: '3',
  allowMixedIds: 'true',
  allowOpenEnd: 'true',
  allowInvisible: 'true',
  allowColumnNames: 'true',
  allowDamagedNumbers: 'true',
  window: 'Mon-Fri 22:00-06:00 Europe/Berlin',
  grace: '15min',
  expectCount: '250±5%',
  canary: '1,10,100',
  maxFailures: '2.5%',
  label: 'team=ops,ticket=OPS-77',
  maxDeletes: '50',
  onStatus: '404=failed,409=retry',
  expectAbsent: 'true',
  expect: '403,409',
  rate: '200/s,100000/day',
  maxConcurrency: '8',
  workers: '2',
  requestTimeoutMs: '500',
  retryDelays: '1s,2s,3s,4s,5s',
  unreachableTimeoutMs: '100',
  stopFile: 'stop',
  tokenFile: 'token',
  tokenCommand: 'echo x',
  clientId: 'me',
  tokenUrl: 'https://auth.example.com/token',
  clientSecretFile: 's',
  refreshTokenFile: 'r',
  scope: 'all',
  tokenAudience: 'api',
  tokenAuth: 'post',
  caFile: 'ca.pem',
  certFile: 'c.pem',
  keyFile: 'k.pem',
  proxy: 'http://proxy.example.com:3128',
  allowHttp: 'api',
  allowedTargets: 'api.example.com',
  protectedTargets: '*prod*',
  keep: '2d',
  stateDir: 'state',
  allowPlaintextRedis: 'true',
  redisUsernameFile: 'u',
  redisPasswordFile: 'p',
  sentinelUsernameFile: 'u',
  sentinelPasswordFile: 'p',
  redisCaFile: 'ca',
  redisCertFile: 'c',
  redisKeyFile: 'k',
  redisServerName: 'n',
  http: '9464',
  logLevel: 'warn',
  logFormat: 'text',
  openMetrics: 'true',
  trustProxyUser: 'X-User',
  trustProxyFrom: '10.0.0.7',
  trustProxyHost: 'expunge.example.com',
  trustProxyRole: 'operate',
  trustProxyGroups: 'X-Groups',
  trustProxyGroupRoles: 'sre=operate',
  results: '/srv/results',
  resultsHeaderFile: 'h',
  notify: 'https://a.example.com/x,https://b.example.com/y',
  notifySecretFile: 's',
  dashboardUrl: 'https://expunge.example.com',
  server: 'https://ops.example.com',
  serverTokenFile: 't',
};
const names = Object.keys(settings) as SettingName[];
const isKept = (name: SettingName) => (scheduledSettings as SettingName[]).includes(name);

const folder = mkdtempSync(join(tmpdir(), 'expunge-add-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The configuration of a command where one setting stands in one place; the others are what a schedule needs. */
function configWith(name: SettingName, where: 'flag' | 'variable' | 'file'): Config {
  const needed = { maxDeletes: '5', ...(name === 'resourceColumn' ? {} : { resource: 'annotations' }) };
  const others = Object.entries(needed).filter(([other]) => other !== name);
  const configFile = join(folder, `${name}.json`);
  writeFileSync(configFile, JSON.stringify(where === 'file' ? { [name]: samples[name] } : {}));
  const flags = { ...Object.fromEntries(others), ...(where === 'flag' && { [name]: samples[name] }) };
  return loadConfig({
    flags,
    env: where === 'variable' ? { [settings[name].env ?? '']: samples[name] } : {},
    configFile,
  }).config;
}

const options = { cron: '0 3 * * *', from: 'expired' };

describe('a schedule', () => {
  it.each(names.flatMap((name) => (['flag', 'variable', 'file'] as const).map((where) => [name, where] as const)))(
    'keeps what each of its runs needs, and nothing that belongs to a process: %s, from its %s',
    (name, where) => {
      const config = configWith(name, where);
      const definition = readDefinition({ options, config });
      if (!isKept(name)) {
        expect(Object.keys(definition.settings)).not.toContain(name);
        return;
      }
      const value = name === 'protect' ? resolve(samples.protect) : config[name];
      expect(definition.settings).toHaveProperty(name, settingText(name, value as never));
      expect(parseStoredSettings(definition)).toHaveProperty(name, value);
    },
  );

  it('leaves to the workers what else a run takes, and they take all of it', () => {
    const settingsOfCommand = (commandName: string) => commands.find(({ name }) => name === commandName)!.settings;
    const isOfServer = (name: SettingName) => (server as readonly SettingName[]).includes(name); // where the run is made
    const others = settingsOfCommand('run').filter((name) => !isKept(name) && !isOfServer(name));
    const forgotten = others.filter((name) => !settingsOfCommand('worker').includes(name));
    expect(forgotten).toEqual([]);
  });

  it('keeps only what run takes, so that the run by hand can be the same', () => {
    const { settings: taken } = commands.find(({ name }) => name === 'run')!;
    expect(scheduledSettings.filter((name) => !taken.includes(name))).toEqual([]);
  });

  it('refuses every flag that would count for nothing', () => {
    expect(settingsBeside().length).toBeGreaterThan(10);
    for (const flag of settingsBeside()) {
      const line = ['schedule', 'add', 'nightly', ...flag];
      expect(() => readCommandLine(line, '1', () => {})).toThrow(`no such option: ${flag[0]}`);
    }
  });

  it('refuses columns of plain lines and of files without a header before any occurrence', () => {
    const config = loadConfig({
      flags: { maxDeletes: '5', resourceColumn: 'kind', noHeader: true },
      env: {},
      configFile: undefined,
    }).config;
    expect(() => readDefinition({ options, config })).toThrow('--resource-column needs a header');
  });
});

/** What only workers take, as it would stand on the command line. */
function settingsBeside(): string[][] {
  const add = commands.find(({ name }) => name === 'schedule')!.subcommands!.find(({ name }) => name === 'add')!;
  return names
    .filter((name) => !add.settings.includes(name))
    .map((name) => [`--${settings[name].flag}`, ...(settings[name].arg === null ? [] : [samples[name]])]);
}
