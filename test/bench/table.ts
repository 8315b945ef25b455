import { type Measured, median } from './measure.ts';
import { bare } from './peers.ts';

/** All rounds of all peers, by name, against one server. */
export type Cell = { latencyMs: number; tls: boolean; ids: number; measured: Map<string, Measured[]> };

/** Medians in a table. Of the deleting phase: seconds, and CPU in microseconds an id and as multiples of the bare loop's client. */
export function cellTable({ latencyMs, tls, ids, measured }: Cell): string {
  const floor = measured.get(bare);
  const rows = [...measured].map(([name, rounds]) => rowOf(name, rounds, floor ?? rounds, ids));
  const title = `${ids.toLocaleString('en')} ids, ${latencyMs} ms latency, ${tls ? 'TLS' : 'no TLS'}`;
  return [`### ${title}`, '', line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n');
}

const heads = [
  '',
  'ids/s',
  'client µs/id (× bare)',
  'Redis µs/id (× bare)',
  'server µs/id',
  'whole: seconds',
  'whole: CPU s of client + Redis',
  'full speed after',
  'RSS',
  'Redis B/id',
];

function rowOf(name: string, rounds: Measured[], floor: Measured[], ids: number): string[] {
  const of = (figure: (m: Measured) => number) => median(rounds.map(figure));
  const micros = (seconds: number) => ((seconds * 1e6) / ids).toFixed(1);
  // Round by round: what disturbs the machine disturbs neighbours alike.
  const times = (figure: (m: Measured) => number) =>
    median(rounds.map((m, i) => figure(m) / floor[i]!.deleting.client)).toFixed(2);
  const beside = (figure: (m: Measured) => number) => `${micros(of(figure))} (${times(figure)})`;
  return [
    name,
    (ids / of((m) => m.deleting.seconds)).toFixed(0),
    beside((m) => m.deleting.client),
    beside((m) => m.deleting.redis),
    micros(of((m) => m.deleting.server)),
    of((m) => m.whole.seconds).toFixed(1),
    `${of((m) => m.whole.client).toFixed(2)} + ${of((m) => m.whole.redis).toFixed(2)}`,
    `${of((m) => m.fullSpeedSeconds).toFixed(1)} s`,
    `${of((m) => m.rssMb).toFixed(0)} MB`,
    Math.max(
      0,
      of((m) => m.redisBytes / ids),
    ).toFixed(1),
  ];
}

function line(cells: string[]): string {
  return `| ${cells.join(' | ')} |`;
}
