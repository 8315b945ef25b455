import { isNameOf, resources } from '../model/resource.ts';

// Whose ids a list has: the column `id` can be about the row itself, and another one about the objects that are meant.

/**
 * Finds the column that could hold the ids in place of `id`: it is named like the resource, is the `id` of another list that was joined, or has a
 * partner that names the kind of each row's object; undefined if there is none. `object_id` has any kind as its partner.
 */
export function findRival(names: readonly string[], resource: string | null): string | undefined {
  const named = names.find((name) => isNamedLike(name, resource) || joinedId.test(name.trim()));
  if (named !== undefined) return named;
  const kinds = names.map((name) => ownerIn(name, kindOfOwner));
  const hasKind = names.some((name) => endOfKind.test(ownerIn(name, idOfOwner) ?? name) || objectWord.test(bare(name)));
  return names.find((name) => {
    const owner = ownerIn(name, idOfOwner);
    return owner !== null && (kinds.includes(owner) || (hasKind && objectWord.test(owner)));
  });
}

/** Whether a column is named like the resource, or like any resource if none is given: annotation_id, AnnotationId, id_view, view-uuid, view_key. */
export function isNamedLike(name: string, resource: string | null): boolean {
  const owner = ownerIn(name, idOfOwner);
  return owner !== null && isNamedAs(owner, resource);
}

/** Whether a text names the resource, or any resource if none is given. */
export function isNamedAs(text: string, resource: string | null): boolean {
  return (resource === null ? resources : [resource]).some((kind) => isNameOf(text, kind));
}

/** Whether an object within a record has an id, and says that it is one of the resource. */
export function isOfResource(value: Record<string, unknown>, resource: string | null): boolean {
  return Object.entries(value).some(([name, says]) => {
    if (typeof says !== 'string' || !isNamedAs(says, resource)) return false;
    return kindWord.test(bare(name)) || ownerIn(name, kindOfOwner) !== null;
  });
}

/** What programs call the second `id` when they join two lists: id_2, id.1, id2, id_x, id:1. */
const joinedId = /^id(?:[^a-z0-9]+(?:[a-z]|\d+)[^a-z0-9]*|\d+)$/i;

const kindWords = 'type|kind|class|model|object|resource';
const kindWord = new RegExp(`^(?:${kindWords})$`, 'i');
const endOfKind = /(?:type|kind|class|model)\s*$/i; // content_type, also in content_type_id
const objectWord = /^(?:object|resource)$/i;
const kindOfOwner = aroundOwner(kindWords);
const idOfOwner = aroundOwner('(?:id|uuid|guid)s?|key');

/** An expression for a word before or after the name of what it is about: owner_type, ownerType, type_owner. */
function aroundOwner(words: string): RegExp {
  return new RegExp(`^(?:([a-z].*?)[^a-z0-9]*(?:${words})|(?:${words})[^a-z0-9]*([a-z].*))$`, 'i');
}

/** The letters of what a column with such a word is about; null for other columns. */
function ownerIn(name: string, word: RegExp): string | null {
  const found = word.exec(bare(name));
  const owner = found?.[1] ?? found?.[2];
  return owner === undefined ? null : owner.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
}

/** A name without what marks the ones that a program adds: `__typename`, `@type`. */
function bare(name: string): string {
  return name.trim().replace(/^[_@$]+/, '');
}
