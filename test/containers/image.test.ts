import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { docker, engineHas } from '../support/engine.ts';
import { until } from '../support/processes.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const base = 'node:24-bookworm-slim';
const image = `expunge-test-${randomBytes(4).toString('hex')}`;

describe.skipIf(!engineHas(base))('the image', () => {
  beforeAll(() => docker(['build', '--quiet', '--build-arg', 'REVISION=abc123', '--tag', image, root]), 300_000);
  afterAll(() => docker(['image', 'rm', image]));

  /** A command in a container that may do as little as possible, as a user that the image doesn't know. */
  const confined = (args: string[], input = '') => {
    const limits = ['--read-only', '--cap-drop', 'ALL', '--user', '12345:12345', '--security-opt', 'no-new-privileges'];
    return docker(['run', '--rm', '--interactive', '--network', 'none', ...limits, ...args], { input });
  };
  const shell = (script: string) => confined(['--entrypoint', 'sh', image, '-c', script]);
  const about = async (name: string, format: string) => JSON.parse(await docker(['inspect', '--format', format, name]));

  test('says what it is', async () => {
    const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
    expect(await about(image, '{{json .Config.Labels}}')).toMatchObject({
      'org.opencontainers.image.title': 'expunge',
      'org.opencontainers.image.licenses': 'MIT',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.revision': 'abc123',
    });
    expect(await shell('expunge --version')).toBe(version);
  });

  test('holds the built command, what it needs and nothing to build with', async () => {
    expect((await shell('ls /app')).split('\n')).toEqual(['LICENSE', 'dist', 'node_modules', 'package.json']);
    expect(await shell('find /app -name "*typescript*" -o -name vitest -o -name "*.ts" -path "/app/dist/*"')).toBe('');
    expect(await shell('for tool in cc gcc make python3 tsc curl; do command -v $tool; done; true')).toBe('');
  });

  test('holds no package that the SBOM of a release does not list', async () => {
    const installed = JSON.parse(await shell('cat /app/node_modules/.package-lock.json')).packages;
    const held = Object.entries<{ version: string }>(installed).map(
      ([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`,
    );
    const sbom = JSON.parse(execFileSync('npm', ['run', 'sbom', '--silent'], { cwd: root, encoding: 'utf8' }));
    const listed = sbom.components.map((component: Record<string, string>) => component['bom-ref']);
    expect(held.length).toBeGreaterThan(20);
    expect(held.filter((name) => !listed.includes(name))).toEqual([]);
  });

  test('has the topics of the help', async () => {
    expect(await shell('expunge help exit-codes')).toMatch(/^Exit codes: what a script can rely on\n/);
  });

  test('is not much larger than the Node below it', async () => {
    const [size, below] = await Promise.all([image, base].map((name) => about(name, '{{.Size}}')));
    console.log(`the image has ${megabytes(size)}, ${megabytes(size - below)} of them on top of ${base}`);
    expect(size - below).toBeLessThan(40_000_000);
  });

  test('reads a list as any user, with nothing to write to but its own folder', async () => {
    expect(await about(image, '{{json .Config.User}}')).toBe('1000:1000');
    const dryRun = 'run - --dry-run --json --resource views --base-url https://api.example.com'.split(' ');
    const plan = await confined(['--tmpfs', '/data', image, ...dryRun], 'v-1\nv-2\n');
    expect(JSON.parse(plan)).toMatchObject({ type: 'plan', rows: 2 });
  });

  test('is told of SIGTERM, as process 1 and without an init', async () => {
    const name = `${image}-sandbox`;
    await docker(['run', '--detach', '--read-only', '--name', name, image, 'sandbox', '--port', '8080']);
    onTestFinished(async () => void (await docker(['rm', '--force', name])));
    await until('it serves', async () => (await docker(['logs', name])).includes('Ctrl-C'));
    await docker(['stop', '--time', '15', name]);
    expect(await docker(['inspect', '--format', '{{.State.ExitCode}}', name])).toBe('0');
    expect(await docker(['logs', name])).toContain('2,000 remain');
  });
});

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
