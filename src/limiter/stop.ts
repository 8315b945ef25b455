import { isoTime } from '../format.ts';
import { type RedisClient, readClock } from '../redis/client.ts';
import { keys } from '../redis/keys.ts';

/** A stop: nothing is sent until an operator lifts it. */
export type Stop = {
  /** An operator stopped all runs of the target, or a file stopped one process. */
  by: 'operator' | 'file';
  who: string; // `ana@laptop`, `the file /run/stop on node-7`
  reason: string;
  at: number; // ms since 1970
  others?: readonly Stop[]; // the stops of other operators, oldest first; each is lifted by its own author
};

/** A stop for people, without a full stop at the end. */
export function stopText({ by, who, reason, others = [] }: Stop): string {
  const what = by === 'operator' ? 'Stopped for all runs of this target' : 'Stopped';
  const all = [{ who, reason }, ...others];
  return `${what} ${all.map((one) => `by ${one.who}${one.reason ? `: ${one.reason.replace(/\.$/, '')}` : ''}`).join('; ')}`;
}

/** The same, and how to lift it. `start`: the command that starts its target. */
export function stopAdvice(stop: Stop, start: string): string {
  const lift = stop.by === 'operator' ? `Resume with: ${start}` : 'Sending resumes when that file is removed.';
  return `${stopText(stop)}. ${lift}`;
}

/** A stop as Redis holds it. */
export function storedStop(stop: Stop): string {
  return JSON.stringify(stop);
}

/** Why a process has no token, and since when, in ms since 1970. */
export type TokenWait = { reason: string; since: number };

/**
 * The report of a process about itself with each call: the stop file that holds it, that it has no token, the only run that it deletes, and its round
 * trip to Redis in ms, if that is far. A worker deletes the detached runs: ''. `restMs`: the process calls again within this time, by default a second.
 */
type Saying = {
  stop: Stop | null;
  token: TokenWait | null;
  run?: string | undefined;
  restMs?: number | undefined;
  redisMs?: number | undefined;
};

/** A report as Redis holds it. */
export function storedSaying({ stop, token, run, restMs, redisMs }: Saying): string {
  return JSON.stringify({ stop, token, run, restMs, redisMs } satisfies Saying);
}

/** Reads what `storedStop` wrote; null for ''. Any other text is a stop as well, because its meaning is unknown. */
export function stopFromStored(text: string): Stop | null {
  const [first, ...others] = stopsFromStored(text).map(({ id: _, ...stop }) => stop);
  if (first === undefined) return null;
  return others.length === 0 ? first : { ...first, others };
}

/** A stop by one operator. `id` names the action; '' if it cannot be read. */
export type StopAction = Omit<Stop, 'others'> & { id: string };

/** All stops in a stored one, oldest first. */
export function stopsFromStored(text: string): StopAction[] {
  if (text === '') return [];
  const { others = [], ...first } = parsed(text);
  return [first, ...others].map(({ by, who, reason, at, id }) => ({
    by: by ?? 'operator',
    who: who ?? '?',
    reason: reason ?? '',
    at: at ?? 0,
    id: id ?? '',
  }));
}

function parsed(text: string): Partial<StopAction> & { others?: Partial<StopAction>[] } {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/**
 * The stops of a target: the stop of all its runs, and the causes that hold single processes. `alive`: the number of processes that may send to it;
 * `said`: the report of each, if it was read.
 */
export type TargetStops = {
  target: Stop | null;
  processes: Stop[];
  tokenless: TokenWait[];
  alive: number;
  said?: readonly Saying[];
};

const lateMs = 4_000; // the call of a process may be late by this much if its machine is overloaded

/** Reads the stops of a target. Only reads, in one round trip. */
export async function readStops(redis: RedisClient, fp: string): Promise<TargetStops> {
  const [stop, alive] = await Promise.all([redis.get(keys.stop(fp)), readProcesses(redis, fp)]);
  const said = alive.map(({ stop, token, run, redisMs }) => ({ stop, token, run, redisMs }));
  return stopsOf(stopFromStored(stop ?? ''), said);
}

function stopsOf(target: Stop | null, said: readonly Saying[]): TargetStops {
  const processes = said.flatMap(({ stop }) => stop ?? []);
  const tokenless = said.flatMap(({ token }) => token ?? []);
  return { target, processes, tokenless, alive: said.length, said };
}

/** The same for the processes that may delete this run: its own commands, or the workers for a detached run. */
export function stopsFor({ id, detached }: { id: string; detached: boolean }, stops: TargetStops): TargetStops {
  if (stops.said === undefined) return stops;
  const own = detached ? '' : id;
  return stopsOf(
    stops.target,
    stops.said.filter(({ run = own }) => run === own),
  );
}

/** The longest round trip to Redis of these processes, in ms; 0 if none of them is far. */
export function farthestMs({ said = [] }: TargetStops): number {
  return Math.max(0, ...said.map(({ redisMs }) => redisMs ?? 0));
}

/** A process that may send to a target, the time of its last call (ms since 1970), and its report. */
type SendingProcess = { name: string; seenAt: number } & Saying;

/** Reads the processes that may send to a target now. Only reads. */
export async function readProcesses(redis: RedisClient, fp: string): Promise<SendingProcess[]> {
  return (await readSaid(redis, fp)).filter(({ isAlive }) => isAlive).map(({ isAlive: _, ...process }) => process);
}

/** Reads the names of processes that have gone without a word within the last two minutes: killed, frozen, or cut off from Redis. Only reads. */
export async function readSilent(redis: RedisClient, fp: string): Promise<string[]> {
  const gone = (await readSaid(redis, fp)).filter(({ isAlive, restMs }) => !isAlive && restMs !== 0);
  return gone.map(({ name }) => name);
}

async function readSaid(redis: RedisClient, fp: string): Promise<(SendingProcess & { isAlive: boolean })[]> {
  const [said, now] = await Promise.all([redis.hgetall(keys.processes(fp)), readClock(redis, keys.processes(fp))]);
  return Object.entries(said).flatMap(([name, text]) => {
    const [, seen, stored] = /^(\S+) (.*)$/s.exec(text) ?? [];
    if (seen === undefined) return [];
    const saying = JSON.parse(stored!) as Saying;
    const isAlive = Math.abs(now - Number(seen)) < (saying.restMs ?? 1_000) + lateMs;
    return [{ name, seenAt: Number(seen), isAlive, ...saying }];
  });
}

/** A stop for scripts, its time as ISO 8601. */
export function stopFacts(stop: Stop | null) {
  if (stop === null) return null;
  const others = stop.others?.map((other) => ({ ...other, at: isoTime(other.at) }));
  return { ...stop, at: isoTime(stop.at), ...(others && { others }) };
}
