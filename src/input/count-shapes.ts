/** The ids of one resource that have the same length in bytes and the same kinds of characters. */
export type CountedShape = {
  resource: number;
  length: number;
  kinds: number; // a bit for each kind of character, by its place in `kindsOfCharacters`
  count: number;
  /** The first of these ids, in input order, and its place. */
  row: number;
  id: string;
  file: number;
  line: number;
};

/** The maximum number of shapes that are told apart; a list of free text has as many as it likes. */
const maxShapes = 256;
const maxBytes = 1024; // of an id

/** Kinds of characters. Each letter or digit of an id can be of several kinds by chance; what separates or surrounds them has a reason. */
export const kindsOfCharacters = [
  ...['0-9', 'a-z', 'A-Z', '-', '_', '.', ':', '/', '@', '+', '=', '~', ',', ' '],
  ...['\'"`', '()', '[]', '{}', '<>', '!#$%&*;?\\^|', 'other'],
] as const;

/** The kind of each byte, as a bit. All bytes of characters beyond ASCII are of the kind `other`, and so are control characters. */
const kindOfByte = Uint32Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  const range = /\d/.test(character) ? 0 : /[a-z]/.test(character) ? 1 : /[A-Z]/.test(character) ? 2 : null;
  const mark = kindsOfCharacters.findIndex((kind, index) => index > 2 && kind !== 'other' && kind.includes(character));
  return 1 << (range ?? (mark === -1 ? kindsOfCharacters.length - 1 : mark));
});

/** Counts ids by their shape, in bounded memory. */
export class ShapeCounter {
  readonly shapes: CountedShape[] = [];
  readonly #byLength: CountedShape[][] = Array.from({ length: maxBytes + 1 }, () => []); // the last one used is in front

  /** Adds an id, whose bytes are in `block`, and its file and line at `placeAt`. The ids can come in any order of their rows. */
  add(id: { row: number; resource: number }, block: Buffer, placeAt: number, start: number, end: number): void {
    let kinds = 0;
    for (let at = start; at < end; at++) kinds |= kindOfByte[block[at]!]!;
    const shape = this.#find(end - start, kinds, id.resource);
    if (shape === null) return;
    shape.count += 1;
    if (id.row >= shape.row) return;
    shape.row = id.row;
    shape.file = block.readUInt32LE(placeAt);
    shape.line = block.readUInt32LE(placeAt + 4);
    shape.id = block.toString('utf8', start, end);
  }

  #find(length: number, kinds: number, resource: number): CountedShape | null {
    const known = this.#byLength[length]!;
    for (let index = 0; index < known.length; index++) {
      const shape = known[index]!;
      if (shape.kinds !== kinds || shape.resource !== resource) continue;
      if (index > 0) [known[0], known[index]] = [shape, known[0]!];
      return shape;
    }
    if (this.shapes.length === maxShapes) return null;
    const shape = { resource, length, kinds, count: 0, row: Number.POSITIVE_INFINITY, id: '', file: 0, line: 0 };
    this.shapes.push(shape);
    known.push(shape);
    return shape;
  }
}
