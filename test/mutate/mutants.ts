import { parseAst } from 'vitest/node';

/** One change of a source file. `isStatic` is found out by running: see runner.ts. */
export type Mutant = { id: number; file: string; line: number; from: string; to: string };

type Node = { type: string; start: number; end: number } & Record<string, unknown>;

const swaps: Record<string, readonly string[]> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '**': ['*'],
  '<<': ['>>'],
  '>>': ['<<'],
  '&': ['|'],
  '|': ['&'],
  '+=': ['-='],
  '-=': ['+='],
  '||=': ['&&='],
  '??=': ['&&='],
  '|=': ['&='],
  '++': ['--'],
  '--': ['++'],
};

const opposites: Record<string, string> = {
  min: 'max',
  max: 'min',
  some: 'every',
  every: 'some',
  floor: 'ceil',
  ceil: 'floor',
};

/**
 * A source with all of its mutants in it: each place asks `$m(id)` whether the mutant of this number is the one that is tried. So the file is
 * compiled and loaded once, however many mutants it has.
 */
export function withMutants(file: string, text: string, firstId: number): { code: string; mutants: Mutant[] } {
  const mutants: Mutant[] = [];
  const add = (node: Node, to: string): number => {
    const from = text.slice(node.start, node.end).replaceAll(/\s+/g, ' ');
    const id = firstId + mutants.length;
    mutants.push({
      id,
      file,
      line: text.slice(0, node.start).split('\n').length,
      from,
      to: to.replaceAll(/\s+/g, ' '),
    });
    return id;
  };

  /** The text of a node, its children rendered. */
  const inside = (node: Node): string => {
    let [at, out] = [node.start, ''];
    for (const child of childrenOf(node)) {
      out += text.slice(at, child.start) + render(child);
      at = child.end;
    }
    return out + text.slice(at, node.end);
  };

  const render = (node: Node): string => {
    if (node.type === 'BlockStatement' && node.isBody && (node.body as Node[]).length > 0) {
      const id = add(node, '{}');
      return `{ if (!$m(${id})) ${inside(node)} }`;
    }
    const original = () => inside(node);
    const changes = changesOf(node, text).map((to) => [add(node, to), to] as const);
    if (changes.length === 0) return original();
    return `(${changes.map(([id, to]) => `$m(${id}) ? (${to}) : `).join('')}(${original()}))`;
  };

  const tree = parseAst(text, { lang: 'ts' } as never) as unknown as Node;
  return { code: inside(tree), mutants };
}

/** The children that can hold mutants, in their order; none below types and names. Marks what is a condition or the body of a function. */
function childrenOf(node: Node): Node[] {
  if (/^(Import|ExportAll)|Literal$/.test(node.type) && node.type !== 'TemplateLiteral') return [];
  const children: Node[] = [];
  for (const [key, value] of Object.entries(node)) {
    if (skipped.has(key) || (key === 'key' && !node.computed) || (key === 'property' && !node.computed)) continue;
    if (node.type === 'ExportNamedDeclaration' && key === 'source') continue;
    if (node.type === 'TaggedTemplateExpression' && key === 'quasi') continue;
    for (const child of Array.isArray(value) ? value : [value]) {
      if (child === null || typeof child !== 'object' || typeof child.type !== 'string') continue;
      if (child.type.startsWith('TS') && !/^TS(As|Satisfies|NonNull)/.test(child.type)) continue;
      child.isCondition = key === 'test' && node.type !== 'SwitchCase';
      child.isLoop = /^(While|For|DoWhile)/.test(node.type);
      child.isBody = /Function/.test(node.type) || node.type === 'IfStatement';
      child.isResult = node.type === 'ReturnStatement' || (node.type === 'ArrowFunctionExpression' && key === 'body');
      child.isInChain = node.type === 'ChainExpression' || (node.isInChain && (key === 'object' || key === 'callee'));
      children.push(child);
    }
  }
  return children.sort((a, b) => a.start - b.start);
}

const skipped = new Set([
  'specifiers', // of imports and exports
  'typeAnnotation',
  'typeArguments',
  'typeParameters',
  'returnType',
  'decorators',
  'implements',
]);

/** What may stand in the place of an expression instead. */
function changesOf(node: Node, text: string): string[] {
  const source = (of: unknown) => text.slice((of as Node).start, (of as Node).end);
  const whole = source(node);
  const changes: string[] = [];
  if (node.isInChain) return []; // parentheses in there would end the chain
  if (node.isCondition && !/^(true|false)$/.test(whole)) changes.push(...(node.isLoop ? ['false'] : ['true', 'false']));
  const isPlain = !/^(undefined|null|true|false|void\b.*|\w+|\[\]|\{\})$/s.test(whole);
  if (node.isResult && isPlain && /Expression$|Literal$/.test(node.type)) changes.push('undefined');
  const [left, right, operator] = [node.left, node.right, String(node.operator)];
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression':
    case 'AssignmentExpression': {
      const isText =
        operator === '+' && [left, right].some((side) => /^['`]/.test(source(side)) || /text/i.test(source(side)));
      const swapped = isText ? [] : (swaps[operator] ?? []);
      const side = node.type === 'AssignmentExpression' ? source : (of: unknown) => `(${source(of)})`; // ?? and && do not mix without
      changes.push(...swapped.map((to) => `${side(left)} ${to} ${side(right)}`));
      break;
    }
    case 'UpdateExpression':
      changes.push(
        node.prefix ? `${swaps[operator]}${source(node.argument)}` : `${source(node.argument)}${swaps[operator]}`,
      );
      break;
    case 'UnaryExpression':
      if (operator === '!') changes.push(source(node.argument));
      if (operator === '-') changes.push(`+${source(node.argument)}`);
      break;
    case 'Literal':
      if (typeof node.value === 'boolean') changes.push(String(!node.value));
      if (typeof node.value === 'string' && node.value !== '') changes.push("''");
      break;
    case 'TemplateLiteral':
      changes.push("''");
      break;
    case 'ArrayExpression':
      if ((node.elements as unknown[]).length > 0) changes.push('[]');
      break;
    case 'ObjectExpression':
      if ((node.properties as unknown[]).length > 0) changes.push('{}');
      break;
    case 'ChainExpression':
      for (const { index } of whole.matchAll(/\?\./g)) {
        const rest = whole.slice(index + 2);
        changes.push(`${whole.slice(0, index)}${/^[[(]/.test(rest) ? '' : '.'}${rest}`);
      }
      break;
    case 'CallExpression': {
      const { object, property } = node.callee as Node & { object?: Node; property?: Node & { name: string } };
      const opposite = property && Object.hasOwn(opposites, property.name) ? opposites[property.name] : undefined;
      if (opposite && object)
        changes.push(`${text.slice(node.start, property!.start)}${opposite}${text.slice(property!.end, node.end)}`);
      break;
    }
  }
  return [...new Set(changes)];
}
