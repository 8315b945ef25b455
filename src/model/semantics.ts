import { type Resource, resources } from './resource.ts';
import { successStatus } from './status.ts';

/** The answer of a target to the DELETE of an object that cannot exist. `gone`: 404 or 410; `accepted`: 204. */
export type Semantics = {
  resource: Resource;
  answers: 'gone' | 'accepted';
  status: number;
  at: number; // ms since 1970
  who: string;
};

/** The sentence for every display of a run whose target answers 204 for anything; none if it does not, or if that is not known. Pure. */
export function describeSemantics(known: readonly Semantics[]): string[] {
  const accepted = known.filter(({ answers }) => answers === 'accepted').map(({ resource }) => resource);
  if (accepted.length === 0) return [];
  const what = accepted.length === resources.length ? 'ids' : accepted.join(' and ');
  return [`this API answers ${successStatus} for ${what} that do not exist: deleted means accepted`];
}
