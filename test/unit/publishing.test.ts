import { execFileSync } from 'node:child_process';
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

describe('the SBOM of a release', () => {
  // There is no registry to ask at this address.
  const env = { ...process.env, npm_config_registry: 'http://127.0.0.1:9' };
  const sbom = JSON.parse(execFileSync('npm', ['run', 'sbom', '--silent'], { cwd: root, env, encoding: 'utf8' }));
  const listed: string[] = sbom.components.map((component: Record<string, string>) => component['bom-ref']);

  it('lists without a network each package of the lock file that expunge needs to run, and no other', () => {
    const locked = Object.entries<{ dev?: true; version: string }>(JSON.parse(read('package-lock.json')).packages);
    const needed = locked
      .filter(([path, { dev }]) => path !== '' && !dev)
      .map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`);
    expect(listed.toSorted()).toEqual([...new Set(needed)].sort());
  });

  it('names every dependency of the manifest as one of expunge, with a license and a hash', () => {
    const { dependsOn } = sbom.dependencies.find(({ ref }: { ref: string }) => ref === `expunge@${manifest.version}`);
    const names = dependsOn.map((ref: string) => ref.slice(0, ref.lastIndexOf('@')));
    expect(names.sort()).toEqual(Object.keys(manifest.dependencies).sort());
    for (const { name, hashes, licenses } of sbom.components) expect([hashes, licenses], name).not.toContain(undefined);
  });

  it('is of expunge, whatever the folder is called', () => {
    expect(sbom.metadata.component).toMatchObject({ type: 'application', name: 'expunge', version: manifest.version });
  });
});

describe('the release workflow', () => {
  const release = read('.github/workflows/release.yml');
  const jobs = Object.fromEntries(
    release.split(/^ {2}(?=\w+:\n)/m).map((text) => [/^\w+/.exec(text)?.[0] ?? '', text] as const),
  );
  /** Checks that these parts follow each other in a job. */
  const expectInOrder = (job: string, parts: string[]) => {
    let rest = jobs[job]!;
    for (const part of parts) {
      expect(rest).toContain(part);
      rest = rest.slice(rest.indexOf(part) + part.length);
    }
  };

  it('publishes nothing before all tests have passed and no vulnerability is known', () => {
    expect(jobs.audit).toContain('run: npm audit --omit=dev\n');
    for (const job of ['npm', 'image']) expect(jobs[job]).toContain('needs: [ci, audit]\n');
    expect(jobs.release).toContain('needs: [npm, image]\n');
  });

  it('signs the SBOM of the package file that it publishes, and attaches both to the release', () => {
    const signed = 'subject-path: expunge-*.tgz\n          sbom-path: expunge.cdx.json\n';
    expectInOrder('npm', [
      'attestations: write',
      'run: npm pack\n',
      'run: npm run sbom --silent > expunge.cdx.json\n',
      'uses: actions/attest@',
      signed,
      'run: npm publish ./expunge-*.tgz --provenance\n',
      'uses: actions/upload-artifact@',
      'expunge.cdx.json\n',
    ]);
    expectInOrder('release', ['uses: actions/download-artifact@', 'gh release create "$GITHUB_REF_NAME" release/*']);
  });

  it('signs the image by its digest, with the SBOM and the provenance that the build has attached', () => {
    expectInOrder('image', [
      'attestations: write',
      'id: build\n        uses: docker/build-push-action@',
      'provenance: mode=max\n',
      'sbom: true\n',
      'uses: actions/attest@',
      'steps.build.outputs.digest',
      'push-to-registry: true\n',
    ]);
  });

  it('may write to the repository only where it creates the release', () => {
    const writing = Object.keys(jobs).filter((job) => jobs[job]!.includes('contents: write'));
    expect(writing).toEqual(['release']);
  });

  it('signs what `expunge help upgrade` verifies', () => {
    const help = read('src/help/upgrade.md');
    const [, workflow] = /--repo OWNER\/REPO --signer-workflow OWNER\/REPO\/([\w./]+)/.exec(help) ?? [];
    expect(read(workflow!)).toBe(release);
    expect(help).toMatch(/verify oci:\/\/ghcr\.io\/OWNER\/REPO:/);
    expect(jobs.image).toContain('subject-name: ghcr.io/$' + '{{ github.repository }}\n');
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
