import { posix } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import * as fromSource from '../../../src/api/assets.ts';

type Assets = Pick<typeof fromSource, 'readPageFile' | 'readAsset'>;

const built = new URL('../../../dist/api/assets.js', import.meta.url).href;

/** The scripts that a browser loads for all pages, by their paths below /assets; what they import is asked for as it stands there. */
async function loadScripts({ readPageFile, readAsset }: Assets) {
  const page = Buffer.from((await readPageFile('index.html'))!.body).toString();
  const scripts = new Map<string, { type: string; text: string } | null>();
  const due = [...page.matchAll(/src="\/assets\/([^"]+)"/g)].map(([, path]) => path!);
  for (const path of due) {
    const file = await readAsset(path);
    const text = file === null ? '' : Buffer.from(file.body).toString();
    scripts.set(path, file && { type: file.type, text });
    const named = [...text.matchAll(/^(?:im|ex)port [^;]*?from ['"]([./][^'"]+)['"]|\bimport\(['"](\.[^'"]+)['"]\)/gm)];
    const imported = named.map(([, a, b]) =>
      posix.resolve('/assets', posix.dirname(path), (a ?? b)!).slice('/assets/'.length),
    );
    due.push(...imported.filter((one) => !due.includes(one)));
  }
  return scripts;
}

// The first of this file: Node warns once a process.
test('serves a page from the sources without a word of Node about it, and as the same file again', async () => {
  const warned = vi.spyOn(process, 'emitWarning');
  onTestFinished(() => warned.mockRestore());
  const first = await fromSource.readAsset('words.js');
  expect(first?.tag).toMatch(/^"[\w-]{22}"$/);
  expect(await fromSource.readAsset('words.js')).toEqual(first);
  expect(warned).not.toHaveBeenCalled();
});

test.each([
  ['the sources', async () => fromSource],
  ['the build', async (): Promise<Assets> => import(built)],
])('serves from %s the scripts of all pages, as a browser asks for them', async (_, open) => {
  const scripts = await loadScripts(await open());
  expect(scripts.size).toBeGreaterThan(12);
  expect([...scripts.keys()]).toEqual(expect.arrayContaining(['lit-html/lit-html.js', 'model/visible.js']));
  for (const [path, script] of scripts) {
    expect([path, script?.type]).toEqual([path, 'text/javascript; charset=utf-8']);
    expect(script!.text).not.toMatch(/^import type|^type \w+ =|\w: string/m);
  }
});
