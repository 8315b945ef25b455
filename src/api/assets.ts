import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { html } from '../report/html.ts';
import { isFileError } from '../system-errors.ts';

/** A file of the pages. `tag`: a hash of its content. */
type Asset = { body: Uint8Array<ArrayBuffer>; type: string; tag: string };

const types: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.webmanifest': 'application/manifest+json',
  '.txt': 'text/plain; charset=utf-8',
};

const pages = fileURLToPath(new URL('../dashboard/', import.meta.url));

/** Whether this process runs from the sources: there, pages are TypeScript; in a build, JavaScript. */
const isSource = import.meta.url.endsWith('.ts');

/** The scripts of pages, by path: making one takes longer than reading its source. */
const stripped = new Map<string, { source: Buffer; script: Buffer }>();

/** The vocabulary that pages share with the other code. */
const model = fileURLToPath(new URL('../model/', import.meta.url));

/** The folders whose files are served, by the first part of their path below /assets. */
const folders: Record<string, string> = {
  model,
  'lit-html': folderOf(import.meta.resolve('lit-html')),
  uplot: folderOf(import.meta.resolve('uplot')),
};

/** The folder of the modules of a package that a browser loads: next to its main file. */
function folderOf(url: string): string {
  const main = fileURLToPath(url);
  return normalize(`${main.slice(0, main.lastIndexOf('/'))}/`).replace(/\/node\/(development\/)?$/, '/');
}

/** Reads a file of the pages by its name, a script by its name in a build; null if there is none. */
export function readPageFile(name: string): Promise<Asset | null> {
  return readFromFolder(pages, name);
}

/** The login page, which leads to `to`. With a problem it shows the sentence about it, which is otherwise hidden; that works without a script. */
export async function readLoginPage(problem: string, to: string): Promise<Asset | null> {
  const page = await readPageFile('login.html');
  if (page === null) return page;
  const text = Buffer.from(page.body)
    .toString()
    .replace(`id="${problem}" hidden`, 'id="problem"')
    .replace('name="to" value="/"', () => html`name="to" value="${to}"`.markup);
  return assetOf(Buffer.from(text), page.type);
}

/** Reads the file of a path below /assets, already decoded; null if none is served there. */
export function readAsset(path: string): Promise<Asset | null> {
  const [first = '', ...rest] = path.split('/');
  const isInFolder = rest.length > 0 && Object.hasOwn(folders, first);
  return isInFolder ? readFromFolder(folders[first]!, rest.join('/')) : readPageFile(path);
}

/** Reads a file. Paths have only plain names, so none leads out of its folder. */
async function readFromFolder(folder: string, name: string): Promise<Asset | null> {
  const isOurs = isSource && (folder === pages || folder === model);
  const path = isOurs ? name.replace(/\.js$/, '.ts') : name;
  const hasTypes = isOurs && extname(path) === '.ts'; // pages import each other by these names
  const type = types[hasTypes ? '.js' : extname(path)];
  const isPlain = path.split('/').every((part) => /^[\w-][\w.-]*$/.test(part));
  if (type === undefined || !isPlain) return null;
  try {
    const content = await readFile(join(folder, path));
    return assetOf(hasTypes ? withoutTypes(join(folder, path), content) : content, type);
  } catch (error) {
    if (isFileError(error)) return null;
    throw error;
  }
}

/** The script of a page, in the form that browsers run. */
function withoutTypes(path: string, content: Buffer): Buffer {
  const known = stripped.get(path);
  if (known?.source.equals(content)) return known.script;
  const { emitWarning } = process;
  process.emitWarning = () => {}; // suppresses the warning of Node that this function is experimental
  try {
    const script = Buffer.from(stripTypeScriptTypes(content.toString()));
    stripped.set(path, { source: content, script });
    return script;
  } finally {
    process.emitWarning = emitWarning;
  }
}

function assetOf(content: Buffer, type: string): Asset {
  const tag = `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
  return { body: new Uint8Array(content), type, tag };
}

/** Answers a request for the file; 304 if the browser has it. Browsers ask each time, so that a new version shows at once. */
export function assetAnswer({ body, type, tag }: Asset, known: string | undefined): Response {
  const headers = { etag: tag, 'cache-control': 'no-cache' };
  if (known?.split(',').some((one) => one.trim().replace(/^W\//, '') === tag))
    return new Response(null, { status: 304, headers });
  return new Response(body, { headers: { ...headers, 'content-type': type } });
}
