import { readFileSync } from 'node:fs';

/** Every topic in the order of the list, with its subject; `NAME.md` next to this file begins with the same words. */
export const topics = {
  examples: 'a command line for each task',
  guarantees: 'what holds for every run, and what each outcome proves',
  input: 'list formats, refused lists, rejected rows, protected ids',
  plans: 'plan now, delete later, and a second person who approves it',
  check: 'whether settings, token, Redis and the API are ready for a run',
  outcomes: 'what each row ends with, what each answer means, what halts a run',
  'exit-codes': 'what a script can rely on',
  json: 'the objects that --json prints',
  reports: 'what happened to every row, which files a run leaves, how long they stay',
  manifests: 'what shows any later edit of a report, and how to sign it',
  retry: 'send the failed ids of an ended run again',
  results: 'the files of each ended run, in a folder or at a URL',
  settings: 'flags, variables, the configuration file, and every default',
  resources: 'objects other than annotations and views, and how to define them',
  tokens: 'where the access token comes from, and how it is refreshed',
  rates: 'how fast ids are deleted, and what makes a run wait',
  control: 'pause, resume, cancel, rate, stop-all, and who did what',
  schedules: 'periodic clean-ups, where their lists come from, what stops one',
  workers: 'detached runs, several processes, draining',
  systemd: 'workers as a service',
  containers: 'docker compose, a rehearsal, and the image',
  kubernetes: 'a Deployment of workers, and scaling by metrics',
  dashboard: 'the pages about runs, targets and schedules, and who may use them',
  proxy: 'the dashboard behind a proxy that checks logins and terminates TLS',
  remote: 'commands that go through a server instead of Redis',
  api: 'the routes of /api/v1, and what a client can rely on',
  monitoring: 'health probes, Prometheus metrics, alerts',
  notifications: 'webhooks for runs, schedules and outages, and heartbeats',
  redis: 'which Redis is used, what it must be, login, TLS, Sentinel, Cluster',
  recovery: 'after a crash, a halt, an outage, or a loss in Redis',
  upgrade: 'verify another version of expunge, replace workers with it, and roll back',
  troubleshooting: 'what you see, why, and what to do',
  sandbox: 'rehearse a run, or serve an API of the same kind, with faults on demand',
} as const;

export type Topic = keyof typeof topics;

export const topicNames = Object.keys(topics) as Topic[];

export function isTopic(name: string): name is Topic {
  return Object.hasOwn(topics, name);
}

/** The text of a topic, as Markdown. */
export function readTopic(name: Topic): string {
  return readFileSync(new URL(`${name}.md`, import.meta.url), 'utf8');
}

/** The alert rules for Prometheus, as YAML. Throws what reading a file throws. */
export function readAlertRules(): string {
  return readFileSync(new URL('alerts.yml', import.meta.url), 'utf8');
}
