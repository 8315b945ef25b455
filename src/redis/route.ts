import type { RedisOptions } from 'ioredis';
import type { PrivatePlace } from './private/place.ts';

/** A Redis server that can be started here. */
export type ServerProgram = { path: string; version: string; env: NodeJS.ProcessEnv };

/** What a route works with. `say` prints a line about what happens to the user's machine. */
export type Surroundings = { place: PrivatePlace; env: NodeJS.ProcessEnv; say: (line: string) => void };

/** A server that answers and how it was come by, or why this way is closed here. */
export type RouteResult = { options: RedisOptions; how: string } | { closed: string };

/**
 * One way to a private Redis. It starts nothing before it knows that it can, and leaves nothing behind when closed.
 * `store` says where its data live: a state folder sticks to the first kind it used, so that no run disappears.
 */
export type Route = { store: 'folder' | 'container'; start: (surroundings: Surroundings) => Promise<RouteResult> };
