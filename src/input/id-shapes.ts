import { count } from '../format.ts';
import { quoteForShell } from '../model/shell-word.ts';
import { type CountedShape, kindsOfCharacters } from './count-shapes.ts';
import { shown } from './input-error.ts';

/** Ids that look alike: how many, the first of them, and its place. `isOdd`: whether they differ from nearly all ids of the list. */
type Shape = { count: number; like: string; file: string; line: number; isOdd: boolean };

/** What the ids of a list look like. */
export type ShapeProfile = {
  /** The most frequent shapes, then the odd ones. Ids that differ only by chance, as random ones do, have one shape. */
  shapes: readonly Shape[];
  /** The number of ids that look unlike nearly all others; 0 if no shape is clear. */
  odd: number;
  /** The `--id-pattern` that all but the odd ids match; null without odd ids, or if there is none that is simple. */
  pattern: string | null;
  /** The length in bytes of all ids but odd ones, if it is one that ids without numbers that grow have; otherwise null. */
  length: number | null;
};

/** The profile of a list without ids, or of a plan that an earlier version has made. */
export const noShapes: ShapeProfile = { shapes: [], odd: 0, pattern: null, length: null };

/** The numbers of ids from which a shape is clear: if they have the same kinds of characters, or only the same length. */
const [minAlike, minEqualLength] = [20, 100];
/** The length from which ids have no number that grows, such as UUIDs: then another length is odd. */
const minFixedLength = 16;
const maxShown = 12;

/**
 * Judges what the ids of one resource look like. A list has a clear shape if nearly all ids have the same kinds of characters, among them digits, or
 * the same length. Then those are odd that hold a kind which is rare in the list, lack a mark that nearly all have, or have another length although
 * all are long and equally long. Nearly all: 99 %, or in a short list all but three, or all but one of twenty. Pure. `others`: the number of ids whose
 * shape was not counted.
 */
export function judgeShapes(counted: readonly CountedShape[], others: number, files: readonly string[]): ShapeProfile {
  const ids = others + sum(counted);
  const nearlyAll = ids - Math.max(1, Math.min(3, Math.floor(ids / 20)), Math.floor(ids / 100));
  const having = (kind: number) => sum(counted.filter(({ kinds }) => (kinds >> kind) & 1));
  const kinds = kindsOfCharacters.map((_, kind) => ({ bit: 1 << kind, isMark: kind > 2, ids: having(kind) }));
  const rare = bits(kinds.filter((kind) => kind.ids <= ids - nearlyAll));
  const needed = bits(kinds.filter((kind) => kind.isMark && kind.ids >= nearlyAll));
  const length = commonest(counted, 'length', nearlyAll);
  const alike = commonest(counted, 'kinds', nearlyAll);
  const isClear =
    (alike !== null && (alike & 1) === 1 && ids >= minAlike) ||
    (length !== null && length >= minFixedLength / 2 && ids >= minEqualLength);
  const isFixed = isClear && length !== null && length >= minFixedLength;
  const isUnlike = (shape: CountedShape) =>
    (shape.kinds & rare) !== 0 || (shape.kinds & needed) !== needed || (isFixed && shape.length !== length);
  const frames = new Set(counted.filter((shape) => !isUnlike(shape)).map(({ id }) => frameOf(id)));
  const isOdd = (shape: CountedShape) => isClear && isUnlike(shape) && !frames.has(frameOf(shape.id));
  const odd = counted.filter(isOdd);
  const usual = counted.filter((shape) => !isOdd(shape));
  const shapes = [
    ...grouped(usual, (shape) => (isClear ? 0 : shape.kinds & marks)).map((group) => toShape(group, files, false)),
    ...grouped(odd, (shape) => shape.kinds).map((group) => toShape(group, files, true)),
  ];
  const oddIds = sum(odd) + (isClear ? others : 0);
  return {
    shapes: shapes.slice(0, maxShown),
    odd: oddIds,
    pattern: patternFor(usual, odd),
    length: isFixed ? length : null,
  };
}

function toShape({ count, id, file, line }: CountedShape, files: readonly string[], isOdd: boolean): Shape {
  return { count, like: id, file: files[file]!, line, isOdd };
}

/** The profiles of the resources of a list as one. */
export function joinProfiles(profiles: readonly ShapeProfile[]): ShapeProfile {
  if (profiles.length === 1) return profiles[0]!;
  const odd = profiles.reduce((all, profile) => all + profile.odd, 0);
  return { shapes: profiles.flatMap(({ shapes }) => shapes).slice(0, maxShown), odd, pattern: null, length: null };
}

/** Why a list with odd ids needs a person who looks at them; null if it has none. */
export function explainOdd({ shapes, odd }: ShapeProfile): string | null {
  if (odd === 0) return null;
  const [usual, first] = [shapes.find(({ isOdd }) => !isOdd), shapes.find(({ isOdd }) => isOdd)];
  const words = `${count(odd)} ${odd === 1 ? 'id does' : 'ids do'} not look like the others`;
  if (usual === undefined || first === undefined) return words;
  return `${words}, which are like ${shown(usual.like)}: ${shown(first.like)} in ${first.file}:${first.line}`;
}

/** How to go on with a list that has odd ids. */
export function adviceOnOdd({ pattern }: ShapeProfile): string {
  const without = pattern === null ? '' : `; to leave them out: --id-pattern ${quoteForShell(pattern)}`;
  return `look at them in the list${without}; if they are ids too: --allow-mixed-ids`;
}

const maxInText = 4;

/** The shapes in words: `48,522 like 3f2a0c1e-…`, `163 like "ann 3f2a…" (line 12)`. `hasFiles`: whether the list has several files. */
export function shapeText({ shapes }: ShapeProfile, hasFiles: boolean): string[] {
  return shapes.slice(0, maxInText).map(({ count: ids, like, file, line, isOdd }) => {
    const example = /^[\w.:-]+$/.test(like) && like.length <= 40 ? like : shown(like);
    const place = isOdd ? ` (${hasFiles ? `${file}:` : 'line '}${line})` : '';
    return `${count(ids)} like ${example}${place}`;
  });
}

/** The profile for `--json` and the API. */
export function shapeFacts({ shapes, odd, pattern }: ShapeProfile) {
  return { shapes: shapes.map(({ isOdd, ...shape }) => ({ ...shape, is_odd: isOdd })), odd, pattern };
}

function sum(shapes: readonly CountedShape[]): number {
  return shapes.reduce((ids, shape) => ids + shape.count, 0);
}

function bits(kinds: readonly { bit: number }[]): number {
  return kinds.reduce((all, { bit }) => all | bit, 0);
}

const marks = ~0b111;

/** The length, or the kinds, of nearly all ids; null if they differ. */
function commonest(counted: readonly CountedShape[], field: 'length' | 'kinds', nearlyAll: number): number | null {
  const byValue = new Map<number, number>();
  for (const shape of counted) byValue.set(shape[field], (byValue.get(shape[field]) ?? 0) + shape.count);
  return [...byValue].find(([, ids]) => ids >= nearlyAll)?.[0] ?? null;
}

/** An id with each word and number as one character: a number that has grown has the same frame, also within base64. */
export function frameOf(id: string): string {
  return decoded(id)
    .replace(/\d+/g, '1')
    .replace(/\p{L}+/gu, 'a');
}

/** The text that base64 holds, as in the ids of GraphQL; any other id as it is. */
function decoded(id: string): string {
  if (!/^[\w+/-]{8,}={0,2}$/.test(id)) return id;
  const text = Buffer.from(id, 'base64').toString('latin1');
  return /^[ -~]+$/.test(text) ? text : id;
}

/** One shape for all with the same key, the most frequent first. */
function grouped(shapes: readonly CountedShape[], keyOf: (shape: CountedShape) => number): CountedShape[] {
  const groups = new Map<number, CountedShape>();
  for (const shape of shapes) {
    const group = groups.get(keyOf(shape));
    const first = group === undefined || shape.row < group.row ? shape : group;
    groups.set(keyOf(shape), { ...first, count: shape.count + (group?.count ?? 0) });
  }
  return [...groups.values()].sort((a, b) => b.count - a.count || a.row - b.row);
}

/** A pattern of the usual ids that no odd one matches, or null: their characters, and their length if it is the same. */
function patternFor(usual: readonly CountedShape[], odd: readonly CountedShape[]): string | null {
  const used = bits(usual.map(({ kinds }) => ({ bit: kinds })));
  const kinds = kindsOfCharacters.filter((_, kind) => (used >> kind) & 1);
  if (odd.length === 0 || kinds.some((kind) => kind.length > 1 && !/^\w-\w$/.test(kind))) return null;
  const set = `[${kinds.filter((kind) => kind !== '-').join('')}${kinds.includes('-') ? '-' : ''}]`;
  const [first] = usual;
  const isFixed = usual.every(({ length }) => length === first!.length);
  const pattern = isFixed ? `${set}{${first!.length}}` : `${set}+`;
  return odd.some(({ id }) => new RegExp(`^${pattern}$`).test(id)) ? null : pattern;
}
