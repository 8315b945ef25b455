import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { isFinalized } from '../../src/ledger/run.ts';
import { ArrivalWatch } from './action-walk-arrivals.ts';
import { ActionDraw, type Step } from './action-walk-draw.ts';
import {
  actOnRun,
  actOnTarget,
  entryOf,
  isHeld,
  type RunAction,
  type RunModel,
  statesByItself,
  type TargetAction,
  type TargetModel,
} from './action-walk-model.ts';
import {
  type Answered,
  type Careless,
  firstRate,
  type List,
  openScene,
  type Scene,
  type View,
} from './action-walk-scene.ts';
import type { AtEnd } from './harness.ts';
import { makeIds } from './ids.ts';
import { until } from './processes.ts';
import { seeded } from './zoo/world.ts';

export type Walk = {
  seed: number;
  actions: number;
  /** It ends by then in any case, however slow the machine is. */
  withinMs: number;
  atEnd: AtEnd;
  /** How long it waits between two steps, on average. */
  restMs: number;
  /** The safety that its processes do without. */
  without?: Careless;
};

/** `broken`: the first promise that was broken, or null. */
export type WalkResult = { broken: string | null; words: string };

type Strike = 'worker' | 'producer' | 'redis' | 'copy' | 'restore';

/** After each eighth step one of these, in an order that the seed shuffles. */
const strikes: readonly Strike[] = ['worker', 'producer', 'copy', 'redis', 'producer', 'restore'];
const strikeEvery = 8;
const checkEvery = 20;
const inForceAfterMs = 60_000;
const carriedOutAfterMs = 30_000; // a server answers after 2 s, also if the action takes longer
const commandsOfProducer = 75; // it sends about as many to Redis, or fewer, for such a list

/**
 * Five people take actions at random, on the command line and over HTTP, some of them twice at once, while workers, producers and Redis are killed
 * and an older copy of Redis comes back. After each step the run, the target and the audit trail have to be as a model says, and what arrives at
 * the API is compared with what was forbidden then.
 */
export async function walk(options: Walk): Promise<WalkResult> {
  const lists = listsFor(options);
  const scene = await openScene(options.atEnd, lists, options.without ?? null);
  const walker = new Walker(scene, options, lists);
  try {
    await walker.go();
    return { broken: null, words: walker.words };
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    return { broken: error.message, words: walker.words };
  }
}

/** Every third list may send only a part of its ids. */
function listsFor({ actions, seed }: Walk): List[] {
  const random = seeded(seed);
  return Array.from({ length: Math.max(20, Math.ceil(actions / 4)) }, (_, n) => {
    const ids = makeIds(`w${n}`, 50 + Math.floor(250 * random()));
    return { name: `w${n}`, ids, maxDeletes: n % 3 === 0 ? Math.ceil(ids.length / 3) : null };
  });
}

class Broken extends Error {}

/** How far several actions may have led: the run, and the audit trail of the target. */
type Way = { run: RunModel | null; trail: readonly string[] };

/** An action that was given, and what the server or the command made of it. */
type Given = { action: RunAction; isStale: boolean; isDone: boolean | null };

class Walker {
  readonly #scene: Scene;
  readonly #options: Walk;
  readonly #lists: ReadonlyMap<string, List>;
  readonly #draw: ActionDraw;
  readonly #arrivals: ArrivalWatch;
  #newLists: string[];
  readonly #runs = new Map<string, RunModel>();
  #gone: RunModel[] = []; // removed runs, and those that an older copy of Redis does not have
  readonly #allowed = new Map<string, number>(); // the highest --max-deletes of a list
  readonly #views = new Map<string, View>(); // by person and run
  #target: TargetModel = { stops: [], trail: [] };
  #strikes: Strike[] = [];
  readonly #counts = { actions: 0, confirmed: 0, refused: 0, unknown: 0 };
  #last = '';

  constructor(scene: Scene, options: Walk, lists: readonly List[]) {
    this.#scene = scene;
    this.#options = options;
    this.#lists = new Map(lists.map((list) => [list.name, list]));
    this.#newLists = [...this.#lists.keys()];
    this.#draw = new ActionDraw(seeded(options.seed + 1));
    this.#arrivals = new ArrivalWatch(scene.harness.sandbox, this.#lists);
    for (const { name, ids, maxDeletes } of lists) this.#allowed.set(name, maxDeletes ?? ids.length);
  }

  get words(): string {
    const { workers, producers, redis, copies } = this.#scene.kills;
    const { actions, confirmed, refused, unknown } = this.#counts;
    const killed = `${workers} workers, ${producers} producers and ${redis} times Redis killed, ${copies} older copies restored`;
    return `seed ${this.#options.seed}: ${actions} actions (${confirmed} confirmed, ${refused} refused, ${unknown} unknown), ${killed}; ${this.#arrivals.words}`;
  }

  async go(): Promise<void> {
    const { actions, withinMs } = this.#options;
    const end = performance.now() + withinMs;
    for (let n = 1; this.#counts.actions < actions && performance.now() < end; n++) {
      await this.#take(this.#draw.next([...this.#runs.values()], this.#newLists));
      if (n % strikeEvery === 0) await this.#strike();
      if (n % checkEvery === 0) await this.#checkAll();
      await sleep((2 * this.#options.restMs * this.#draw.below(100)) / 100);
    }
    await sleep(4_000); // for what is held last
    await this.#checkAll();
  }

  #take(step: Step): Promise<void> {
    if (step.kind === 'new') return this.#makeRun(step);
    return step.kind === 'target' ? this.#actOnTarget(step.actions) : this.#actOnRun(step.actions, step.looksBefore);
  }

  #break(what: string, facts: unknown): never {
    throw new Broken(`${what}, at action ${this.#counts.actions}: ${this.#last}\n${JSON.stringify(facts, null, 1)}`);
  }

  // What people do

  async #actOnRun(actions: readonly RunAction[], looksBefore: boolean): Promise<void> {
    const { model: before, view: now } = await this.#read(actions[0]!.run);
    const shown = actions.map(({ who }) => this.#show(who, before.id, now, looksBefore));
    for (const action of actions) {
      const most = action.command === 'resume' ? (action.maxDeletes ?? 0) : 0;
      this.#allowed.set(before.list, Math.max(most, this.#allowed.get(before.list)!));
    }
    const from = performance.now();
    const answers = await this.#give(actions, (action, i) => this.#scene.action(action, shown[i]!));
    const at = performance.now();
    const given = actions.map((action, i) => {
      const isStale = action.way === 'api' && shown[i]!.revision !== now.revision;
      return { action, isStale, isDone: answers[i]!.isDone };
    });
    const read = async () => {
      const [found, target] = await Promise.all([this.#scene.readRun(before.id), this.#scene.readTarget()]);
      const inTurn = [given, given.toReversed()].some((turn) => this.#explains(turn, before, found?.model, target));
      return { found: found?.model ?? null, target, isExpected: inTurn };
    };
    let { found, target, isExpected } = await read();
    for (const isLate = answers.some(({ words }) => words.startsWith('202')); isLate && !isExpected; ) {
      if (performance.now() > at + carriedOutAfterMs) break;
      ({ found, target, isExpected } = await read());
    }
    if (!isExpected) this.#break('an action did what it may not do', { before, found, target, answers, given, shown });
    this.#target = target;
    this.#note(before, found, from, at);
  }

  /** Whether these actions, one after the other, lead to what was found. */
  #explains(turn: readonly Given[], before: RunModel, found: RunModel | undefined, target: TargetModel): boolean {
    let ways: Way[] = [{ run: before, trail: this.#target.trail }];
    for (const { action, isStale, isDone } of turn) {
      const removal = entryOf('remove', action);
      ways = ways.flatMap(({ run, trail }): Way[] => {
        // Two who remove a run at once have both removed it, and any other action finds nothing.
        if (run === null) {
          const both = action.command === 'remove' ? [{ run, trail: [...trail, removal] }] : [];
          return isDone === true ? both : [{ run, trail }, ...both];
        }
        const hasMoved = run.trail.length !== before.trail.length;
        const outcomes = actOnRun(run, action, isStale || hasMoved)
          .filter((outcome) => isDone === null || outcome.isDone === isDone)
          .map((outcome) => ({ run: outcome.run, trail: [...trail, ...outcome.targetTrail] }));
        if (isDone === null) outcomes.push({ run, trail: [...trail] });
        return turn.length > 1 && isDone !== true ? [...outcomes, ...leftUndone(run, action, trail)] : outcomes;
      });
    }
    return ways.some(({ run, trail }) => isSameRun(run, found ?? null) && isSameTrail(trail, target.trail));
  }

  async #actOnTarget(actions: readonly TargetAction[]): Promise<void> {
    const from = performance.now();
    const answers = await this.#give(actions, (action) => this.#scene.actOnTarget(action));
    const at = performance.now();
    const before = this.#target;
    const found = await this.#scene.readTarget();
    let ways = [before];
    for (const [i, action] of actions.entries()) {
      const obeyed = ways.map((target) => actOnTarget(target, action));
      ways = answers[i]!.isDone === null ? [...ways, ...obeyed] : obeyed;
    }
    const isExpected = ways.some(
      (way) => isDeepStrictEqual(way.stops, found.stops) && isSameTrail(way.trail, found.trail),
    );
    if (!isExpected || answers.some(({ isDone }) => isDone === false))
      this.#break('an action for all runs did what it may not do', { before, ways, found, answers });
    this.#target = found;
    this.#arrivals.forbid(this.#forbidden(), from, at);
  }

  /** The command that makes a run of a list, also where there is one: then it continues that one, unless a person holds it. */
  async #makeRun({ who, reason, list }: Extract<Step, { kind: 'new' }>): Promise<void> {
    const last = [...this.#runs.values()].find((run) => run.list === list && !isFinalized(run.state));
    const known = last && (await this.#read(last.id)).model;
    const before = known === undefined || isFinalized(known.state) ? null : known;
    const from = performance.now();
    const isBegun = before !== null && before.state !== 'preparing' && before.state !== 'planned';
    const make = () => this.#scene.make(this.#lists.get(list)!, who, reason, isBegun);
    const [answer] = await this.#give([{ command: 'run', who, reason, list }], make);
    const at = performance.now();
    const made = /"run":"([^"]+)"/.exec(answer!.words)?.[1];
    if (before === null && answer!.isDone === null) return this.#adopt(list, from, at);
    if (before === null) {
      if (!answer!.isDone || made === undefined) this.#break('no run was made', { answer, list });
      const { model, view } = (await this.#scene.readRun(made))!;
      const isWhole = view.rows === this.#lists.get(list)!.ids.length;
      if (!isWhole || !isSameTrail([entryOf('start', { who, reason: '' })], model.trail))
        this.#break('a run is not the one that was asked for', { model, view, answer });
      this.#newLists = this.#newLists.filter((name) => name !== list);
      return this.#note(null, model, from, at);
    }
    const found = (await this.#scene.readRun(before.id))?.model ?? null;
    if (made !== undefined && made !== before.id) this.#break('a list has two runs at once', { before, made, answer });
    const mayStart = !(before.pauses.length > 0 || before.isCancelRequested);
    const starts = ['', reason].map((why) => [...before.trail, entryOf('start', { who, reason: why })]);
    const trails = mayStart ? [before.trail, ...starts] : [before.trail];
    const isExpected =
      found !== null && trails.some((trail) => isSameTrail(trail, found.trail)) && isInForce(before, found);
    if (!isExpected) this.#break('a repeated command did what it may not do', { before, found, answer });
    this.#note(before, found, from, at);
  }

  /** Takes actions, several of them at once. */
  async #give<T>(actions: readonly T[], send: (action: T, i: number) => Promise<Answered>): Promise<Answered[]> {
    this.#counts.actions += actions.length;
    this.#last = actions.map((action) => JSON.stringify(action)).join(' and ');
    const answers = await Promise.all(actions.map(send));
    for (const { isDone } of answers) this.#counts[isDone === null ? 'unknown' : isDone ? 'confirmed' : 'refused']++;
    return answers;
  }

  // What is known

  #show(who: string, run: string, now: View, looksBefore: boolean): View {
    const key = `${who} ${run}`;
    const known = this.#views.get(key);
    if (known !== undefined && !looksBefore) return known;
    this.#views.set(key, now);
    return now;
  }

  /** A run as it is now: it may have ended by itself, and nothing else may have happened to it. */
  async #read(id: string): Promise<{ model: RunModel; view: View }> {
    const known = this.#runs.get(id)!;
    const now = await this.#scene.readRun(id);
    if (now === null || !isSameRun(known, now.model)) this.#break('a run has moved by itself', { known, now });
    this.#runs.set(id, now.model);
    return now;
  }

  /** Notes what an action has made of a run. `from`: when it was given, `at`: when it was confirmed. */
  #note(before: RunModel | null, found: RunModel | null, from: number, at: number): void {
    if (found !== null) this.#runs.set(found.id, found);
    else if (before !== null && this.#runs.delete(before.id)) this.#gone.push(before);
    this.#arrivals.forbid(this.#forbidden(), from, at);
  }

  /** The lists of which nothing may be sent now, and why. */
  #forbidden(): Map<string, string> {
    const { stops } = this.#target;
    const why = new Map<string, string>();
    for (const run of this.#runs.values()) {
      if (stops.length > 0) why.set(run.list, `stopped by ${stops.map(({ who }) => who)}`);
      else if (isHeld(run)) why.set(run.list, `run ${run.id} is ${run.state}, ${JSON.stringify(run.pauses)}`);
    }
    if (stops.length === 0) for (const run of this.#runs.values()) if (!isHeld(run)) why.delete(run.list);
    return why;
  }

  async #checkAll(): Promise<void> {
    const target = await this.#scene.readTarget();
    if (!isSameTrail(target.trail, this.#target.trail))
      this.#break('the audit trail of the target has moved by itself', { known: this.#target, target });
    for (const id of [...this.#runs.keys()]) await this.#read(id);
    const now = performance.now();
    this.#arrivals.forbid(this.#forbidden(), now, now);
    const sent = this.#arrivals.findForbidden();
    if (sent !== null) this.#break('what was forbidden was sent', sent);
    for (const [list, allowed] of this.#allowed) {
      const sent = this.#arrivals.sent(list);
      if (sent > allowed) this.#break('more ids were sent than --max-deletes allows', { list, allowed, sent });
    }
  }

  // What goes wrong

  async #strike(): Promise<void> {
    if (this.#strikes.length === 0) this.#strikes = this.#draw.shuffled(strikes);
    const strike = this.#strikes.pop()!;
    this.#last = `after ${this.#last}: ${strike}`;
    if (strike === 'worker') await this.#scene.killWorker(this.#draw.below(100));
    if (strike === 'copy') await this.#scene.copyRedis();
    if (strike === 'producer') await this.#killProducer();
    if (strike === 'redis') await this.#killRedis();
    if (strike === 'restore') await this.#restoreRedis();
  }

  /** Kills the command that makes a run at one of its commands to Redis, which may have been sent. */
  async #killProducer(): Promise<void> {
    const [list] = this.#newLists;
    if (list === undefined) return;
    const { proxy, kills } = this.#scene;
    const last = proxy.commands + 5 + this.#draw.below(commandsOfProducer);
    const isSent = this.#draw.is(0.5);
    const from = performance.now();
    const producer = this.#scene.startProducer(this.#lists.get(list)!, 'ana');
    proxy.onCommand = (command) => {
      if (command < last) return;
      producer.signal('SIGKILL');
      if (!isSent) proxy.cut();
    };
    const { signal } = await producer.ended;
    proxy.onCommand = () => {};
    proxy.restore();
    if (signal === 'SIGKILL') kills.producers++;
    await this.#adopt(list, from, performance.now());
  }

  /** Takes a run as it was left, if it was begun. One that can be started has all that it is to obey. */
  async #adopt(list: string, from: number, at: number): Promise<void> {
    const isOfList = ({ files }: { files: string[] }) => files.some((file) => file.endsWith(`/${list}.txt`));
    const record = (await this.#scene.harness.runs()).find((run) => isOfList(run) && !this.#runs.has(run.id));
    if (record === undefined) return;
    const run = (await this.#scene.readRun(record.id))!.model;
    const { maxDeletes } = this.#lists.get(list)!;
    if (run.state !== 'preparing' && (run.maxDeletes !== maxDeletes || run.rate !== firstRate))
      this.#break('a run does not have the rules that were asked for with it', { run, maxDeletes });
    this.#newLists = this.#newLists.filter((name) => name !== list);
    this.#note(null, run, from, at);
  }

  /** A sixth person takes an action meanwhile, of which nobody may know whether it was taken. */
  async #killRedis(): Promise<void> {
    const from = performance.now();
    const { id } = this.#draw.pick([...this.#runs.values()]);
    const action: RunAction = { command: 'pause', who: 'fay', reason: 'action-under-kill', way: 'cli', run: id };
    const entry = entryOf('pause', action);
    const { view } = await this.#read(id);
    const asked = this.#scene.action(action, view);
    await sleep(this.#draw.below(300));
    await this.#scene.killRedis();
    const { isDone } = await asked;
    await this.#comeBack(from, (before, now) => {
      if (before.id === id && isDone && !isFinalized(now.state) && !now.trail.includes(entry))
        this.#break('a pause that was confirmed is lost', { before, now });
      const others = (trail: readonly string[]) => trail.filter((one) => one !== entry);
      if (!isSameTrail(others(before.trail), others(now.trail)))
        this.#break('an entry of the audit trail is lost, or came by itself', { before, now });
    });
  }

  async #restoreRedis(): Promise<void> {
    const from = performance.now();
    await this.#scene.restoreRedis();
    this.#views.clear(); // revisions are counted from where they were then
    await this.#comeBack(from, () => {});
  }

  /** Waits until all actions are in force again that were before, and takes the rest as Redis has it now. */
  async #comeBack(from: number, check: (before: RunModel, now: RunModel) => void): Promise<void> {
    const before = [...this.#runs.values(), ...this.#gone];
    const { stops } = this.#target;
    const read = () => Promise.all(before.map(async ({ id }) => (await this.#scene.readRun(id))?.model ?? null));
    const isBack = async () => {
      this.#target = await this.#scene.readTarget();
      if (!stops.every((stop) => hasHold(this.#target.stops, stop))) return false;
      return (await read()).every((now, i) => now === null || isInForce(before[i]!, now));
    };
    await until('all actions are in force again', isBack, inForceAfterMs).catch(async () => {
      const pairs = (await read()).map((now, i) => ({ before: before[i]!, now }));
      const missing = pairs.filter(({ before, now }) => now !== null && !isInForce(before, now));
      const logs = this.#scene.workers.map(({ stderr }) => stderr.slice(-3_000).split('\n'));
      this.#break('an action was lost', { missing, stops, now: this.#target.stops, logs });
    });
    this.#gone = [];
    for (const [i, now] of (await read()).entries()) {
      if (now !== null) check(before[i]!, now);
      this.#note(before[i]!, now, from, performance.now());
      if (now === null && !this.#gone.includes(before[i]!)) this.#gone.push(before[i]!);
    }
  }
}

/** What is left of an action that met another one halfway, and was refused then: its first entry, or the rule that it has written. */
function leftUndone(run: RunModel, action: RunAction, trail: readonly string[]): Way[] {
  if (action.command === 'remove')
    return [{ run, trail: [...trail, entryOf('remove', action), entryOf('not removed', action)] }];
  if (action.command !== 'resume' || action.maxDeletes === null) return [];
  const { maxDeletes } = action;
  return [{ run: { ...run, maxDeletes, trail: [...run.trail, entryOf('max-deletes', action)] }, trail }];
}

/** A run may have ended by itself since it was asked for. */
function isSameRun(expected: RunModel | null, found: RunModel | null): boolean {
  if (expected === null || found === null) return expected === found;
  return (
    statesByItself(expected).includes(found.state) && isDeepStrictEqual({ ...found, state: expected.state }, expected)
  );
}

const keptEntries = 50;

/** Only so many entries are kept. */
function isSameTrail(expected: readonly string[], found: readonly string[]): boolean {
  return isDeepStrictEqual(expected.slice(-keptEntries), found.slice(-keptEntries));
}

function hasHold(holds: RunModel['pauses'], hold: RunModel['pauses'][number]): boolean {
  return holds.some((one) => isDeepStrictEqual(one, hold));
}

/** Whether what people asked to be held is held still. */
function isInForce(before: RunModel, now: RunModel): boolean {
  const isCancelled = before.state === 'cancelled' || before.isCancelRequested;
  if (isCancelled) return now.isCancelRequested || now.state === 'cancelled' || now.state === 'completed';
  if (isFinalized(now.state)) return true;
  return (
    before.pauses.every((pause) => hasHold(now.pauses, pause)) && !(now.pauses.length > 0 && now.state === 'running')
  );
}
