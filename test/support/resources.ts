import { afterAll, beforeAll } from 'vitest';
import { readResources } from '../../src/config/read-resources.ts';
import { defineResources } from '../../src/model/resource.ts';
import type { Harness } from './harness.ts';

/** The `resources` of a configuration file, as it is written. */
export type WrittenResources = Record<string, object>;

/** One resource of each kind: a 204 as for built-in ones, a 200 with an API key, and an id that is not at the end of its path. */
export const configuredResources = {
  dashboards: { path: '/v1/dashboards/{id}' },
  reports: { path: '/v1/reports/{id}', success: [200], absent: [404], auth: { header: 'x-api-key' } },
  folders: { path: '/v3/exports/{id}' },
  exports: { path: '/v3/exports/{id}/file', headers: { accept: 'application/json' } },
} satisfies WrittenResources;

/** Lets this process, with the sandboxes in it, know these resources. Commands in this process define theirs anew. */
export function know(written: WrittenResources): void {
  defineResources(readResources(written));
}

/** The same until the tests of the file are over. */
export function knowDuringTests(written: WrittenResources): void {
  beforeAll(() => know(written));
  afterAll(() => know({}));
}

/** Writes a configuration file with these resources. Returns what tells a command to read it. */
export function configOf(harness: Pick<Harness, 'file'>, written: WrittenResources, name = 'resources.json') {
  return { EXPUNGE_CONFIG: harness.file(name, JSON.stringify({ resources: written })) };
}
