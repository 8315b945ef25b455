import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parseAst } from 'vitest/node';

// A test that asserts how long something took fails on a busy machine, and says nothing about the product. What a promise of speed is worth is
// measured in test/bench, and held in test/prove.

const root = fileURLToPath(new URL('../../', import.meta.url));

type Node = { type: string; start: number; [field: string]: unknown };

/** Comparisons that a slower machine turns: an assertion of equality is not one of time. */
const comparing = /^(toBe(Less|Greater)Than(OrEqual)?|toBeCloseTo|toSatisfy)$/;

/** A reading of a real clock: a call, or the instants that a harness notes. */
const clock = /\b(performance\.now|Date\.now|process\.hrtime|arrivals)\b/;

function childrenOf(node: Node): Node[] {
  return Object.values(node)
    .flat()
    .filter((value): value is Node => typeof (value as Node | null)?.type === 'string');
}

function* nodesIn(node: Node): Generator<Node> {
  yield node;
  for (const child of childrenOf(node)) yield* nodesIn(child);
}

function isCall(node: Node, text: (node: Node) => string, name: RegExp): boolean {
  return node.type === 'CallExpression' && name.test(text(node.callee as Node));
}

/** The lines of a test file whose assertions compare a difference of two readings of a real clock. */
function clockAssertions(source: string): number[] {
  if (!clock.test(source)) return [];
  const tree = parseAst(source, { lang: 'ts' }) as unknown as Node;
  const text = (node: Node) => source.slice(node.start, node.end as number);
  const all = [...nodesIn(tree)];
  const readings = new Set<string>(); // names of instants of a real clock
  const spans = new Set<string>(); // names of differences of such instants
  const reads = (node: Node) =>
    node.type === 'CallExpression' || node.type === 'MemberExpression'
      ? clock.test(text(node))
      : isNamed(node, readings);
  const isNamed = (node: Node, names: Set<string>) => node.type === 'Identifier' && names.has(node.name as string);
  const holds = (node: Node, what: (node: Node) => boolean) => [...nodesIn(node)].some(what);
  const isSpan = (node: Node): boolean =>
    isNamed(node, spans) || (node.type === 'BinaryExpression' && node.operator === '-' && holds(node, reads));
  for (let before = -1; before !== readings.size + spans.size; ) {
    before = readings.size + spans.size;
    for (const node of all) {
      const [id, value] =
        node.type === 'VariableDeclarator'
          ? [node.id, node.init]
          : node.type === 'FunctionDeclaration'
            ? [node.id, node.body]
            : [];
      if (!id || !value || (id as Node).type !== 'Identifier') continue;
      const name = (id as Node).name as string;
      if (holds(value as Node, isSpan)) spans.add(name);
      else if (reads(value as Node)) readings.add(name);
    }
  }
  const late = (node: Node) => node.type === 'BinaryExpression' && node.operator === '+' && holds(node, reads); // a deadline: an instant and so many ms
  const found = all.filter((node) => {
    const callee = node.callee as Node | undefined;
    if (node.type !== 'CallExpression' || callee?.type !== 'MemberExpression') return false;
    if (!comparing.test(text(callee.property as Node)) || !holds(callee, (inner) => isCall(inner, text, /^expect\b/)))
      return false;
    if (holds(node, (inner) => isCall(inner, text, /^promised$/))) return false; // it holds nobody to it but in prove
    return (
      holds(node, isSpan) || (holds(callee, reads) && (node.arguments as Node[]).some((limit) => holds(limit, late)))
    );
  });
  return found.map(({ start }) => source.slice(0, start).split('\n').length);
}

describe('the tests', () => {
  it('assert no elapsed time and no rate outside of bench and prove', () => {
    const files = globSync('test/**/*.ts', { cwd: root }).filter((path) => !/^test\/(bench|prove)\//.test(path));
    expect(files.length).toBeGreaterThan(100);
    const found = files.flatMap((path) =>
      clockAssertions(readFileSync(root + path, 'utf8')).map((line) => `${path}:${line}`),
    );
    expect(found).toEqual([]);
  });

  it.each([
    ['a span', 'const from = performance.now(); await x(); expect(performance.now() - from).toBeLessThan(5_000);'],
    ['a named span', 'const at = Date.now(); const took = Date.now() - at; expect(took).toBeGreaterThan(900);'],
    [
      'a rate',
      'const at = Date.now(); const perSecond = n / ((Date.now() - at) / 1_000); expect(perSecond).toBeCloseTo(9);',
    ],
    [
      'a span of a helper',
      'function took() { const at = Date.now(); return Date.now() - at; } expect(took()).toBeLessThan(9);',
    ],
    ['a deadline', 'const at = Date.now(); expect(Date.now()).toBeLessThan(at + 1_000);'],
  ])('find %s', (_, source) => {
    expect(clockAssertions(source)).toEqual([1]);
  });

  it.each([
    ['counts', 'const at = Date.now(); expect(requests.length).toBeLessThan(9); use(at);'],
    ['an order', 'const before = Date.now(); expect(run.startsAt).toBeGreaterThanOrEqual(before);'],
    ['a clock of its own', 'let now = 0; expect(now - 5).toBeLessThan(9);'],
  ])('do not take for it %s', (_, source) => {
    expect(clockAssertions(source)).toEqual([]);
  });
});
