import { ExpungeError } from '../errors.ts';
import { count } from '../format.ts';
import { type Resource, sumIds } from '../model/resource.ts';

/** Throws GUARD if the list holds more ids than `--max-deletes` allows; nothing was sent by then. */
export function checkMaxDeletes(ids: Record<Resource, number>, most: number | undefined): void {
  const total = sumIds(ids);
  if (most === undefined || total <= most) return;
  throw new ExpungeError(
    'GUARD',
    `the list holds ${count(total)} ids, --max-deletes allows ${count(most)}; nothing was sent`,
    {
      next: 'check the list; if it is right, raise --max-deletes, or take a part of it with --limit',
    },
  );
}
