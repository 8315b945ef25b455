import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Draws text over what it drew before. Loaded where something is drawn only: in a pipe it would be a tenth of every start. */
export function redrawOn(stream: NodeJS.WriteStream): ReturnType<typeof import('log-update').createLogUpdate> {
  const { createLogUpdate } = require('log-update') as typeof import('log-update');
  return createLogUpdate(stream);
}
