import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Done, runProgram } from '../support/processes.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'expunge-package-'));
const modules = join(work, 'installed/node_modules');
const installed = join(modules, 'expunge');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

let packed: { size: number; files: { path: string }[] };

// What the tests have built by the script that `npm publish` runs, packed, and unpacked beside its dependencies only: what is missing there is
// missing for users.
beforeAll(async () => {
  const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', work];
  const [answer] = Object.values(JSON.parse((await succeed(runProgram('npm', pack, { cwd: root }))).stdout));
  const { filename, ...rest } = answer as typeof packed & { filename: string };
  packed = rest;
  mkdirSync(installed, { recursive: true });
  await succeed(runProgram('tar', ['-xzf', join(work, filename), '-C', installed, '--strip-components', '1']));
  for (const name of Object.keys(manifest.dependencies)) link(join(root, 'node_modules', name), join(modules, name));
}, 120_000);

afterAll(() => rmSync(work, { recursive: true, force: true }));

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}

async function succeed(command: Promise<Done>): Promise<Done> {
  const ended = await command;
  if (ended.code !== 0) throw new Error(`exit ${ended.code}\n${ended.stdout}\n${ended.stderr}`);
  return ended;
}

const run = (program: string[], input = '') =>
  runProgram(process.execPath, program, { cwd: join(work, 'installed'), input, env: { HOME: work } });

/** The files of the installed package in `dist`, with their text. */
function modulesOfDist(): { path: string; text: string }[] {
  const entries = readdirSync(join(installed, 'dist'), { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  return paths.filter((path) => path.endsWith('.js')).map((path) => ({ path, text: readFileSync(path, 'utf8') }));
}

describe('the package', () => {
  it('is smaller than 700 KB', () => {
    expect(packed.size).toBeLessThan(700_000);
  });

  it('holds what runs and what is read, and neither sources nor maps to them', () => {
    const paths = packed.files.map(({ path }) => path);
    const plain = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json'];
    expect(paths.filter((path) => !path.startsWith('dist/')).sort()).toEqual(plain);
    expect(paths).toContain(manifest.bin.expunge);
    expect(paths.filter((path) => /\.(ts|map|lua)$/.test(path))).toEqual([]);
    expect(modulesOfDist().filter(({ text }) => text.includes('sourceMappingURL'))).toEqual([]);
  });

  it('has every file that its modules name', () => {
    const named = modulesOfDist().flatMap(({ path, text }) => {
      const urls = [...text.matchAll(/new URL\('([^'$]+)', import\.meta\.url\)/g)];
      return urls.map(([, name]) => join(dirname(path), name!));
    });
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((path) => !existsSync(path))).toEqual([]);
  });

  it('has every module that another imports, and needs no package but its dependencies', async () => {
    const paths = modulesOfDist().map(({ path }) => path);
    const others = paths.filter((path) => !/dist\/(bin\.js|commands\/line\/cli\.js|dashboard\/\w)/.test(path));
    expect(others.length).toBeGreaterThan(100);
    const loadAll = `for (const path of ${JSON.stringify(others)}) await import(path); process.stdout.write('loaded'); process.exit()`;
    expect(await run(['--input-type=module', '-e', loadAll])).toMatchObject({ code: 0, stdout: 'loaded', stderr: '' });
  });

  it('has every file that its pages load', () => {
    const dist = join(installed, 'dist');
    const pages = join(dist, 'dashboard');
    const texts = readdirSync(pages).map((name) =>
      readFileSync(join(pages, name), 'utf8').replace(/\/\*.*?\*\//gs, ''),
    );
    const named = texts.flatMap((text) => [...text.matchAll(/['"](?:\.|\/assets)\/([\w./-]+\.(?:js|css|svg))['"]/g)]);
    const places = named.map(([, path]) => path!.replace(/^uplot\//, 'uplot/dist/'));
    const known = ['app.js', 'lit-html/lit-html.js', 'model/visible.js', 'uplot/dist/uPlot.iife.min.js'];
    expect(places).toEqual(expect.arrayContaining(known));
    const folderOf = (path: string) => (path.startsWith('model/') ? dist : path.includes('/') ? modules : pages);
    expect(places.filter((path) => !existsSync(join(folderOf(path), path)))).toEqual([]);
  });

  it('runs', async () => {
    const bin = join(installed, manifest.bin.expunge);
    expect(await run([bin, '--version'])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
    const dry = ['run', '-', '--resource', 'views', '--base-url', 'https://api.example.com', '--dry-run', '--json'];
    const { code, stdout } = await run([bin, ...dry], 'v-1\nv-2\n');
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { type: 'plan', views: 2 }]);
  });

  it('exports what its manifest says', () => {
    for (const path of Object.values<string>(manifest.exports))
      expect(existsSync(join(installed, path)), path).toBe(true);
  });
});
