import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(root + path, 'utf8');
const manifest = JSON.parse(read('package.json'));
const workflows = readdirSync(`${root}.github/workflows`).map((name) => read(`.github/workflows/${name}`));

describe('what is published', () => {
  it('names no repository: that of the release is named by its workflow', () => {
    for (const field of ['repository', 'bugs', 'homepage']) expect(manifest).not.toHaveProperty(field);
    expect(workflows.join()).toContain('npm pkg set repository.type=git');
  });

  it('is public, with provenance, and for systems that its tests run on', () => {
    expect(manifest.publishConfig).toEqual({ access: 'public', provenance: true });
    expect(manifest.os).toEqual(['darwin', 'linux']);
    for (const system of ['ubuntu-latest', 'macos-latest']) expect(workflows.join()).toContain(system);
  });

  it('is tested on the oldest Node that it promises to run on', () => {
    const oldest = manifest.engines.node.replace('>=', '');
    expect(workflows.join()).toContain(`'${oldest}'`);
    expect(read('src/bin.js')).toContain(`[${oldest.replace('.', ', ')}]`);
  });

  it('has one version: in the manifest, the lock file, the image and the changelog', () => {
    const { version } = manifest;
    expect(JSON.parse(read('package-lock.json')).version).toBe(version);
    expect(read('Dockerfile')).toContain(`ARG VERSION=${version}\n`);
    expect(read('CHANGELOG.md')).toMatch(new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\] - `, 'm'));
  });

  it('is described by the same words in the manifest and on the image', () => {
    const [, words] = /image\.description="([^"]+)"/.exec(read('Dockerfile')) ?? [];
    const [, authors] = /image\.authors="([^"]+)"/.exec(read('Dockerfile')) ?? [];
    expect([words, authors]).toEqual([manifest.description, manifest.author]);
  });
});

describe('the lock file', () => {
  it('names no registry: packages come from the one that somebody has set up', () => {
    expect(read('package-lock.json')).not.toMatch(/"resolved"|https?:\/\/registry/);
  });
});

describe('workflows and guides for contributors', () => {
  const texts = [
    ...workflows,
    read('.github/CONTRIBUTING.md'),
    read('.github/PULL_REQUEST_TEMPLATE.md'),
    read('.ci/run'),
  ];

  it('run scripts that there are', () => {
    const named = texts.flatMap((text) => [...text.matchAll(/\bnpm run ([\w:-]+)/g)].map(([, name]) => name!));
    expect(named).toContain('types');
    expect(named.filter((name) => manifest.scripts[name] === undefined)).toEqual([]);
  });

  it('check in CI what `npm run check` does', () => {
    const parts = [...manifest.scripts.check.matchAll(/npm (?:run )?[\w-]+/g)].map(([command]) => command);
    expect(parts.length).toBeGreaterThan(3);
    const ci = read('.github/workflows/ci.yml');
    // With the Node of the matrix: npm would take the one of the devDependency.
    const tests = manifest.scripts.test.replace(/^vitest/, 'node node_modules/vitest/vitest.mjs');
    for (const command of parts) {
      expect(ci, command).toContain(`run: ${command === 'npm test' ? tests : command}\n`);
      expect(read('.ci/run'), command).toContain(command);
    }
  });
});
