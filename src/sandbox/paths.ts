import type { Resource } from '../model/outcome.ts';

/** Where the resources live. Plain string work: this runs for every request, and a URL parser would cost more than the rest. */
export type Paths = {
  resourceOf(target: string): Resource | null;
  idIn(target: string, resource: Resource): string | null; // null where no object can have this path
};

export function createPaths(basePath: string): Paths {
  const annotations = `${basePath}/v2/annotations/`;
  const views = `${basePath}/v2/views/`;
  return {
    resourceOf(target) {
      if (target.startsWith(annotations)) return 'annotations';
      return target.startsWith(views) ? 'views' : null;
    },
    idIn: (target, resource) => decodeId(target.slice((resource === 'views' ? views : annotations).length)),
  };
}

/** A slash would make it another path, and the API takes no query. */
function decodeId(segment: string): string | null {
  if (segment === '' || segment.includes('/') || segment.includes('?')) return null;
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
