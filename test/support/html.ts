/** A tag of a page, and the names of its attributes. */
export type Tag = { name: string; attributes: string[] };

const voids = new Set(['meta', 'path']);

/** The tags of a page, as they begin. Throws for what is neither a tag nor escaped text, and for tags that do not end where they should. */
export function tagsOf(page: string): Tag[] {
  const body = page.replace(/^<!doctype html>\n/, '').replace(/(<style>)[^<]*(<\/style>)/, '$1$2');
  const open: string[] = [];
  const tags: Tag[] = [];
  const rest = body.replace(/<(\/?)([a-z][a-z0-9]*)((?: [a-zA-Z-]+="[^"<>]*")*)\/?>/g, (_, slash, name, words) => {
    if (slash === '/') {
      if (open.pop() !== name) throw new Error(`</${name}> ends another tag`);
      return '';
    }
    if (!voids.has(name)) open.push(name);
    tags.push({ name, attributes: [...words.matchAll(/ ([a-zA-Z-]+)="/g)].map(([, attribute]) => attribute) });
    return '';
  });
  if (/[<>"']/.test(rest)) throw new Error(`not escaped: ${/.{0,40}[<>"'].{0,40}/.exec(rest)?.[0]}`);
  if (open.length > 0) throw new Error(`not ended: ${open.join(' ')}`);
  return tags;
}

const entities: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };

/** What a reader sees. */
export function textOf(page: string): string {
  const text = page.replace(/<style>[^<]*<\/style>/, '').replace(/<[^>]*>/g, ' ');
  return text.replace(/&[a-z#0-9]+;/g, (entity) => entities[entity] ?? entity).replace(/\s+/g, ' ');
}
