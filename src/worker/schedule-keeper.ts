import { messageOf } from '../errors.ts';
import { type Bells, type Ear, openBells, openEar } from '../queue/bell.ts';
import { within } from '../queue/within.ts';
import type { QueueConnection } from '../redis/connect.ts';
import { refusalWords } from '../redis/errors.ts';
import { attend } from '../schedule/attend.ts';
import type { Schedule } from '../schedule/schedule.ts';
import { listSchedules, readSchedule, type ScheduleWork } from '../schedule/schedule-store.ts';
import { type Part, repeat } from './parts.ts';

const lookEveryMs = 3_000;
const drainMs = 500; // a hand that is not let go of is free by itself

/**
 * Keeps the schedules whose source this process has: hears their bells, and looks after them now and then. It sets bells again that BullMQ
 * has lost, and sees to slots whose bell nobody heard. Where several processes do that, each thing is still done once.
 */
export class ScheduleKeeper {
  readonly #work: ScheduleWork;
  readonly #sources: { bells: Bells; ear: Ear; name: string }[];
  readonly #stop = new AbortController();
  readonly #attending = new Map<string, Promise<void>>();

  constructor(work: ScheduleWork, connection: QueueConnection) {
    this.#work = work;
    this.#sources = Object.keys(work.sources).map((name) => {
      const address = { fp: work.target.fp, source: name, connection };
      const ear = openEar(address, (schedule) => void this.#heard(name, schedule), work.log);
      return { name, bells: openBells(address), ear };
    });
  }

  /** In the order in which they start. A process without sources has none of them. */
  get parts(): Part[] {
    if (this.#sources.length === 0) return [];
    return [
      { name: 'schedules', drain: () => this.#drain() },
      { name: 'bells', start: () => this.#startEars(), drain: () => this.#drainEars() },
      repeat('schedule keeper', lookEveryMs, () => this.#look(), this.#work.log),
    ];
  }

  #startEars(): void {
    for (const { ear } of this.#sources) ear.start();
  }

  async #drainEars(): Promise<void> {
    await Promise.all(this.#sources.map(({ ear }) => ear.drain()));
  }

  async #drain(): Promise<void> {
    this.#stop.abort();
    await within(drainMs, Promise.all(this.#attending.values()));
    await Promise.all(this.#sources.map(({ bells }) => bells.close()));
  }

  async #look(): Promise<void> {
    const { ledger, target } = this.#work;
    for (const schedule of await listSchedules(ledger.redis, target.fp)) {
      const source = this.#sources.find(({ name }) => name === schedule.from);
      if (source === undefined) continue;
      await keepBell(source.bells, schedule);
      void this.#attend(schedule.name);
    }
  }

  /** A bell that rings for nobody is taken down. */
  async #heard(source: string, name: string): Promise<void> {
    try {
      const { ledger, target } = this.#work;
      const schedule = await readSchedule(ledger.redis, target.fp, name);
      if (schedule?.from === source && schedule.state === 'active') await this.#attend(name);
      else await this.#sources.find((one) => one.name === source)?.bells.remove(name);
    } catch (error) {
      this.#work.log.warn({ schedule: name, reason: messageOf(error) }, 'a bell was not answered, looking again later');
    }
  }

  /** Once at a time in this process; it ends with what it finds then, so another call meanwhile would find nothing more. */
  #attend(name: string): Promise<void> {
    const known = this.#attending.get(name);
    if (known) return known;
    const task = attend(this.#work, name, this.#stop.signal)
      .catch((error) => this.#tell(name, error))
      .finally(() => this.#attending.delete(name));
    this.#attending.set(name, task);
    return task;
  }

  /** That Redis refuses writes is told by those who delete, and need not be told of each schedule. */
  #tell(schedule: string, error: unknown): void {
    const level = refusalWords(error) === '' ? 'warn' : 'debug';
    this.#work.log[level]({ schedule, reason: messageOf(error) }, 'a schedule has trouble, looking again later');
  }
}

async function keepBell(bells: Bells, { name, state, cron, tz }: Schedule): Promise<void> {
  if (state === 'active') await bells.keep(name, { cron, tz });
  else await bells.remove(name);
}
