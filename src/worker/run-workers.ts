import type { ChildProcess } from 'node:child_process';
import type { Config } from '../config/settings.ts';
import type { Log } from '../logger.ts';
import type { Target } from '../model/target.ts';
import type { RedisAddress } from '../redis/address.ts';
import { hearBorrower, loanOf, type TokenLoan, type TokenReport } from '../token/borrowed-token.ts';
import type { Token } from '../token/token.ts';
import type { Part } from './parts.ts';
import { superviseWorkers } from './supervisor.ts';

/** A worker's task. It comes over the channel between both processes, because every user of the machine can read arguments. */
export type WorkerOrder = {
  worker: number;
  run: string;
  target: Target;
  config: Config;
  /** Certificate authorities to trust for the API. */
  ca: string | null;
  /** The private Redis; null = the Redis that REDIS_URL names. */
  redis: Pick<RedisAddress, 'kind' | 'label' | 'options'> | null;
};

/** A message from the command. A loan comes every 200 ms, which also shows that the command is at work. */
export type ToWorker = 'drain' | { order: WorkerOrder; loan: TokenLoan } | { loan: TokenLoan } | { halt: string };

/** A message from a worker. `tell`: a warning for people; `status`: its answer to SIGUSR1. */
export type FromWorker = TokenReport | { inFlight: number } | { tell: string } | { status: string };

const loanEveryMs = 200;
const restartsAtMost = 3;

type RunWorkersOptions = {
  /** The number of workers, without the process of the command. */
  size: number;
  /** Starts the process of the worker with this number, counted from 1, with an IPC channel. */
  fork(worker: number): ChildProcess;
  orderFor(worker: number): WorkerOrder;
  token: Token;
  tell(line: string): void;
  /** Shows the status that a worker was asked for. */
  say(line: string): void;
  log: Log;
  random: () => number;
};

/**
 * The other processes of a foreground run. They consume its queue with the token of the command. The command keeps everything else: panel, halts,
 * signals and the report. A process that dies is restarted, at most three times in a row. Each drains by itself once the command is gone or
 * frozen. States: idle → started → leaving → drained.
 */
export class RunWorkers {
  readonly #options: RunWorkersOptions;
  readonly #inFlight = new Map<ChildProcess, number>();
  readonly #unsent = new Map<ChildProcess, number>();
  readonly #leaving = new AbortController();
  #timer: NodeJS.Timeout | null = null;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(options: RunWorkersOptions) {
    this.#options = options;
  }

  readonly part: Part = { name: 'workers', start: () => this.#begin(), drain: () => this.#end() };

  /** The requests in flight, over all workers. */
  get inFlight(): number {
    let sum = 0;
    for (const requests of this.#inFlight.values()) sum += requests;
    return sum;
  }

  #begin(): void {
    const { size, log, random } = this.#options;
    if (size === 0) return;
    this.#timer = setInterval(() => this.#lend(), loanEveryMs);
    const start = (worker: number) => this.#start(worker);
    this.#ended = superviseWorkers({ size, start, stop: this.#leaving.signal, restartsAtMost, log, random });
  }

  /** Asks all workers to drain. Returns at once; doing it twice changes nothing. */
  leave(): void {
    this.#leaving.abort();
  }

  async #end(): Promise<void> {
    this.leave();
    await this.#ended;
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  #start(worker: number): ChildProcess {
    const { fork, orderFor, token, tell } = this.#options;
    const child = fork(worker);
    this.#inFlight.set(child, 0);
    child.on('message', (said) => this.#hear(child, said as FromWorker));
    child.on('error', () => {}); // the supervisor notices its end
    child.once('exit', () => {
      this.#inFlight.delete(child);
      this.#unsent.delete(child);
    });
    keepLastLine(child, (line) => tell(`worker ${worker}: ${line}`));
    this.#send(child, { order: orderFor(worker), loan: loanOf(token) });
    return child;
  }

  #lend(): void {
    const loan = loanOf(this.#options.token);
    for (const child of this.#inFlight.keys()) if (!this.#unsent.get(child)) this.#send(child, { loan }); // a frozen process gets no more
  }

  #send(child: ChildProcess, message: ToWorker): void {
    if (!child.connected) return;
    this.#unsent.set(child, (this.#unsent.get(child) ?? 0) + 1);
    child.send(message, () => {
      if (this.#unsent.has(child)) this.#unsent.set(child, this.#unsent.get(child)! - 1);
    });
  }

  #hear(child: ChildProcess, said: FromWorker): void {
    if ('inFlight' in said) this.#count(child, said.inFlight);
    else if ('tell' in said) this.#options.tell(said.tell);
    else if ('status' in said) this.#options.say(said.status);
    else {
      const halt = hearBorrower(this.#options.token, said);
      if (halt !== null) this.#send(child, { halt });
    }
  }

  /** Counts requests in flight. A report can arrive after the child has ended, and no longer counts then. */
  #count(child: ChildProcess, requests: number): void {
    if (this.#inFlight.has(child)) this.#inFlight.set(child, requests);
  }
}

const longestLine = 500;

/** Calls `tell` with the last line that a process wrote to stderr, once it has ended with an error. Null stderr: nothing is read. */
function keepLastLine(child: ChildProcess, tell: (line: string) => void): void {
  let last = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    last = `${last}${text}`.slice(-longestLine);
  });
  child.once('close', (code) => {
    const line = last.trim().split('\n')[0] ?? '';
    if (code !== 0 && line !== '') tell(line);
  });
}
