import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { takenNames } from '../../../src/config/read-resources.ts';
import { builtInResources, defineResources } from '../../../src/model/resource.ts';
import { toSingular } from '../../../src/model/singular.ts';
import { command } from '../../support/command.ts';

const folder = mkdtempSync(join(tmpdir(), 'expunge-resources-'));
const started = process.cwd();
afterAll(() => {
  process.chdir(started);
  rmSync(folder, { recursive: true });
});
afterEach(() => {
  process.chdir(started);
  defineResources({});
});

const env = { EXPUNGE_BASE_URL: 'https://api.example.com/eu/' };

function fileOf(content: string, name = 'resources.json'): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

/** A file with one definition: its path is on line 5, another field on line 6. */
function oneWrong(field: string, value: unknown): string {
  const path = field === 'path' ? value : '/v1/dashboards/{id}';
  const other = field === 'path' ? '' : `,\n      ${JSON.stringify(field)}: ${JSON.stringify(value)}`;
  const definition = `{\n      "path": ${JSON.stringify(path)}${other}\n    }`;
  return `{\n  "column": "path",\n  "resources": {\n    "dashboards": ${definition}\n  }\n}\n`;
}

const good = JSON.stringify({ resources: { dashboards: { path: '/v1/dashboards/{id}', success: [200] } } });

describe('a configuration file with a resource that cannot be used is refused with its line', () => {
  it.each([
    '/v1/../dashboards/{id}',
    '/v1/%2e%2e/dashboards/{id}',
    '/v1/{id}/charts/{id}',
    '/v1/dashboards',
    '/v1/dashboards/{id}?force=true',
    '/v1/dashboards/{id}#now',
    '/v1/dashboards-{id}',
    'POST /v1/dashboards/{id}',
    'https://evil.example/{id}',
    '/v1//{id}',
    '/v1\\dashboards/{id}',
    '/v1/dashboards/{ID}',
    `/${'d'.repeat(10_000)}/{id}`,
  ])('%s', async (path) => {
    const config = fileOf(oneWrong('path', path));
    const { code, stdout, stderr } = await command(['run', 'ids.csv', '--config', config, '--yes'], { env });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`error: ${config}:5: "resources": "dashboards": "path": `);
    expect(stderr).toContain('which deletes https://api.example.com/eu/v1/dashboards/ID\n');
    expect(stderr.length).toBeLessThan(2_000);
  });

  it.each<[field: string, value: unknown]>([
    ['method', 'POST'],
    ['success', [404]],
    ['absent', [429]],
    ['auth', {}],
    ['headers', []],
    ['body', {}],
  ])('with %s %j', async (field, value) => {
    const config = fileOf(oneWrong(field, value));
    const { code, stderr } = await command(['config', 'show', '--config', config], { env });
    expect(code).toBe(2);
    expect(stderr).toContain(`${config}:6: "resources": "dashboards": ${JSON.stringify(field)}: `);
    expect(stderr).toMatch(/ {2}expunge help resources .*shows how to define one\n$/);
  });

  it('with the same key twice', async () => {
    const config = fileOf(
      '{"resources": {"dashboards": {"path": "/v1/a/{id}"},\n"dashboards": {"path": "/v1/b/{id}"}}}',
    );
    const { code, stderr } = await command(['config', 'show', '--config', config]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('"dashboards" twice in one object (line 2 column 1)')]);
  });

  it('and shows no password of a base URL', async () => {
    const config = fileOf(oneWrong('path', '/v1/dashboards'));
    const { stderr } = await command(['config', 'show', '--config', config], {
      env: { EXPUNGE_BASE_URL: 'https://me:geheim@api.example.com?key=geheim' },
    });
    expect(stderr).toContain(`${config}:5: `);
    expect(stderr).not.toContain('geheim');
  });
});

describe('a broken configuration file', () => {
  const broken = () => ({ EXPUNGE_CONFIG: fileOf(oneWrong('path', '/v1/dashboards'), 'broken.json') });

  it.each([[['--help']], [['help', 'outcomes']], [['--version']], [['completion', 'bash']], [['run', '--help']]])(
    'does not matter to %j',
    async (args) => {
      const { code, stderr } = await command(args, { env: broken() });
      expect([code, stderr]).toEqual([0, '']);
    },
  );

  it.each([
    [['config', 'show']],
    [['sandbox', '--resource', 'dashboards=5']],
    [['check', '--verdicts', '--resource', 'dashboards']],
    [['run', 'ids.csv', '--resource', 'dashboards']],
    [['explain', 'dashboards', 'd-1']],
  ])('is what %j complains about', async (args) => {
    const { code, stderr } = await command(args, { env: broken() });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^error: .*broken\.json:5: "resources": "dashboards": "path": /);
  });
});

describe('the resources of a configuration file are found', () => {
  const verdicts = ['check', '--verdicts', '--resource', 'dashboards'];
  const other = JSON.stringify({ resources: { dashboards: { path: '/v1/dashboards/{id}', success: [202] } } });

  it.each<[how: string, args: (file: string) => string[], variable: boolean]>([
    ['with --config FILE', (file) => [...verdicts, '--config', file], false],
    ['with --config=FILE', (file) => [...verdicts, `--config=${file}`], false],
    ['with --config before the command', (file) => ['--config', file, ...verdicts], false],
    ['with EXPUNGE_CONFIG', () => verdicts, true],
    [
      'with the last of two --config',
      (file) => [...verdicts, '--config', fileOf(other, 'other.json'), '--config', file],
      false,
    ],
    ['with --config rather than EXPUNGE_CONFIG', (file) => [...verdicts, '--config', file], false],
  ])('%s', async (_, args, variable) => {
    const file = fileOf(good);
    const { code, stdout } = await command(args(file), {
      env: { EXPUNGE_CONFIG: variable ? file : fileOf(other, 'o.json') },
    });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}200 +deleted$/m);
    expect(stdout).toMatch(/^ {2}204.* unknown/m);
  });

  it('in the folder', async () => {
    fileOf(good, 'expunge.config.json');
    process.chdir(folder);
    expect(await command(verdicts)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^ {2}200 +deleted$/m) });
    rmSync(join(folder, 'expunge.config.json'));
  });

  it('in a pipe, which can be read only once', async () => {
    const pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const writer = spawn('sh', ['-c', 'printf %s "$1" > "$0"', pipe, good]); // one write, which ends when it is read
    onTestFinished(() => void writer.kill());
    expect(await command([...verdicts, '--config', pipe])).toMatchObject({ code: 0, stderr: '' });
  });

  it('not in what follows --', async () => {
    const { code, stderr } = await command(['run', '--resource', 'dashboards', '--', `--config=${fileOf(good)}`]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('"dashboards"')]);
    expect(stderr).toContain('annotations');
  });
});

describe('check --verdicts', () => {
  it('shows the table of a resource, and names the others', async () => {
    const config = fileOf(
      JSON.stringify({
        resources: {
          dashboards: { path: '/v1/dashboards/{id}', success: [202], absent: [410] },
          charts: { path: '/c/{id}' },
        },
      }),
    );
    const usual = await command(['check', '--verdicts', '--config', config]);
    expect(usual.stdout).toMatch(/^ {2}204 +deleted$/m);
    expect(usual.stdout).toContain(
      'This is the table of annotations. Others: --resource dashboards, --resource charts\n',
    );
    const own = await command(['check', '--verdicts', '--config', config, '--resource', 'dashboards']);
    expect(own.stdout).toMatch(/^ {2}202 +deleted: accepted, to be done later$/m);
    expect(own.stdout).toMatch(/^ {2}404 +failed$/m);
    expect(own.stdout).toMatch(/200-399, 406 other than a success +for 3 ids/);
  });

  it('has one line for each status, although --on-status gives a success another meaning', async () => {
    const { stdout } = await command([
      ...['check', '--verdicts', '--config', fileOf(good), '--resource', 'dashboards'],
      ...['--on-status', '200=failed'],
    ]);
    expect(stdout.match(/^[ *] 200 /gm)).toEqual(['  200 ']);
  });
});

it('no resource can have the name of a field of a record beside it', async () => {
  writeFileSync(join(folder, 'ids.txt'), 'a-1\n');
  const args = ['run', join(folder, 'ids.txt'), '--resource', 'annotations', '--dry-run', '--json'];
  const { stdout } = await command(args, { env: { ...env, EXPUNGE_STATE_DIR: join(folder, 'state') } });
  const known = Object.keys(builtInResources);
  const fields = Object.keys(JSON.parse(stdout)).filter((name) => !known.includes(name));
  expect(fields).toContain('first_url');
  expect(fields.filter((name) => !takenNames.includes(name))).toEqual([]);
  expect(takenNames).toEqual(expect.arrayContaining(known.map(toSingular)));
});
