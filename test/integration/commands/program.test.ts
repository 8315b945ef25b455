import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { nameProgram } from '../../../src/commands/line/program.ts';

/** Files and links in a folder of the test. */
function openFolder(files: readonly string[], links: Record<string, string> = {}) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'expunge-program-')));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = (name: string) => join(folder, name);
  const make = (name: string) => mkdirSync(dirname(path(name)), { recursive: true });
  for (const name of files) {
    make(name);
    writeFileSync(path(name), '');
    chmodSync(path(name), 0o755);
  }
  for (const [name, to] of Object.entries(links)) {
    make(name);
    symlinkSync(path(to), path(name));
  }
  return path;
}

/** What is said of a script that `node` was started with. */
function started(script: string, env: NodeJS.ProcessEnv): string {
  return nameProgram({ node: 'node', script }, env);
}

const checkout = ['home/expunge', 'home/src/bin.js', 'home/dist/bin.js'];
const npm = { npm_execpath: '/usr/lib/npm-cli.js' };

describe('the program is', () => {
  test('the launcher of a checkout, by the path that works here', () => {
    const path = openFolder(checkout);
    expect(started(path('home/src/bin.js'), { PATH: '/usr/bin' })).toBe(path('home/expunge'));
    expect(started(path('home/src/bin.js'), npm)).toBe(path('home/expunge'));
    expect(started(join(process.cwd(), 'src/bin.js'), {})).toBe('./expunge');
  });

  test('expunge, where the PATH has it, also by a link', () => {
    const path = openFolder(checkout, { 'bin/expunge': 'home/expunge', 'usr/expunge': 'home/dist/bin.js' });
    expect(started(path('home/src/bin.js'), { PATH: `/nowhere:${path('bin')}` })).toBe('expunge');
    expect(started(path('usr/expunge'), { PATH: path('usr') })).toBe('expunge');
    expect(started(path('home/dist/bin.js'), { PATH: path('usr') })).toBe('expunge');
  });

  test('the path of what was started, where the PATH has another one', () => {
    const path = openFolder([...checkout, 'other/expunge', 'a folder/expunge']);
    expect(started(path('home/src/bin.js'), { PATH: path('other') })).toBe(path('home/expunge'));
    expect(started(path('a folder/expunge'), { PATH: path('other') })).toBe(`'${path('a folder/expunge')}'`);
  });

  test('its path, below npm, whose own folder of programs no shell has', () => {
    const path = openFolder(['m/node_modules/expunge/dist/bin.js'], {
      'm/node_modules/.bin/expunge': 'm/node_modules/expunge/dist/bin.js',
    });
    const folder = path('m/node_modules/.bin');
    expect(started(join(folder, 'expunge'), { PATH: folder, npm_execpath: '/usr/lib/npm-cli.js' })).toBe(
      join(folder, 'expunge'),
    );
    expect(started(join(folder, 'expunge'), { PATH: '/usr/bin' })).toBe(join(folder, 'expunge'));
    expect(started(join(folder, 'expunge'), { PATH: folder })).toBe('expunge');
  });

  test('node and the script, where that is what was started', () => {
    const path = openFolder(checkout);
    const script = path('home/dist/bin.js');
    expect(started(script, { PATH: '/usr/bin' })).toBe(`node ${script}`);
    expect(nameProgram({ node: '/my node/node', script }, {})).toBe(`'/my node/node' ${script}`);
    expect(started(join(process.cwd(), 'dist/bin.js'), {})).toBe('node ./dist/bin.js');
  });

  test('expunge in the image, whose PATH has what its entry point starts', () => {
    const path = openFolder(['app/dist/bin.js'], { 'usr/local/bin/expunge': 'app/dist/bin.js' });
    expect(started(path('app/dist/bin.js'), { PATH: path('usr/local/bin') })).toBe('expunge');
  });
});
