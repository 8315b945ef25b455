import { type Resource, resources } from './resource.ts';

/** The answer of a target to the DELETE of an object that cannot exist. `gone`: 404 or 410; `accepted`: a success. */
export type Semantics = {
  resource: Resource;
  answers: 'gone' | 'accepted';
  status: number;
  at: number; // ms since 1970
  who: string;
};

/** The sentence for every display of a run whose target answers with a success for anything; none if it does not, or if that is not known. Pure. */
export function describeSemantics(known: readonly Semantics[]): string[] {
  const accepted = known.filter(({ answers }) => answers === 'accepted').map(({ resource }) => resource);
  if (accepted.length === 0) return [];
  const isEach = accepted.length === known.length && resources.every((resource) => accepted.includes(resource));
  const what = isEach ? 'ids' : accepted.join(' and ');
  const statuses = new Set(known.filter(({ answers }) => answers === 'accepted').map(({ status }) => status));
  return [`this API answers ${[...statuses].join(' or ')} for ${what} that do not exist: deleted means accepted`];
}
