import { refusePlainHttp } from '../config/check-target.ts';
import type { Config } from '../config/settings.ts';
import { ExpungeError, readNamedFile } from '../errors.ts';
import { type Receiver, receiverKey } from './webhook.ts';

/** A receiver of this process. `label`: for people, without the path of its URL; `key`: names it in Redis. */
export type NamedReceiver = Receiver & { label: string; key: string };

type Settings = Pick<Config, 'notify' | 'notifySecretFile' | 'proxy' | 'allowHttp'>;

/** The receivers that `--notify` names, without repetitions. Throws USAGE or CREDENTIALS for settings that cannot be used. */
export function openReceivers(settings: Settings, env: NodeJS.ProcessEnv): NamedReceiver[] {
  const urls = [...new Set(settings.notify ?? [])];
  const secrets = readSecrets(settings, env);
  if (secrets.length > 1 && secrets.length !== urls.length) {
    throw new ExpungeError(
      'CREDENTIALS',
      `expected one secret for all receivers, or one a line for each of the ${urls.length} URLs, got ${secrets.length}`,
    );
  }
  return urls.map((url, i) => {
    refusePlainHttp('--notify', new URL(url).origin, settings.allowHttp, 'read and forge events');
    const route = { ca: null, proxy: settings.proxy ?? null };
    const label = urls.length > 1 ? `${new URL(url).origin} (receiver ${i + 1})` : new URL(url).origin;
    return { url, route, label, key: receiverKey(url), secrets: secrets[i] ?? secrets[0] ?? [] };
  });
}

/** The secrets of each line. */
function readSecrets({ notifySecretFile: path }: Settings, env: NodeJS.ProcessEnv): Buffer[][] {
  const where = path === undefined ? 'EXPUNGE_NOTIFY_SECRET' : `EXPUNGE_NOTIFY_SECRET_FILE ${path}`;
  const text =
    path === undefined ? env.EXPUNGE_NOTIFY_SECRET : readNamedFile('EXPUNGE_NOTIFY_SECRET_FILE', path, 'CREDENTIALS');
  const lines = (text ?? '').split('\n').map((line) => line.trim());
  return lines.flatMap((line, n) => (line === '' ? [] : [parseSecrets(line, `${where}, line ${n + 1}`)]));
}

const minBytes = 24; // at most 64, by the standard
const maxBytes = 64;

/** One secret, or several separated by spaces, each of which signs: the old and the new one during a replacement. */
function parseSecrets(line: string, where: string): Buffer[] {
  return line.split(/\s+/).map((word) => {
    const [, encoded = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(word) ?? [];
    const secret = Buffer.from(encoded, 'base64');
    if (secret.length >= minBytes && secret.length <= maxBytes) return secret;
    throw new ExpungeError('CREDENTIALS', `${where}: expected whsec_ and ${minBytes} to ${maxBytes} bytes in base64`, {
      next: `make one: echo "whsec_$(openssl rand -base64 32)"`,
    });
  });
}
