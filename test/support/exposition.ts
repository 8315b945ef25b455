/** What a scrape says, read as Prometheus reads it. */
export type Exposition = {
  /** The value of a series, for example `expunge_runs{state="running"}`; undefined where there is none. */
  value(series: string): number | undefined;
  /** The sum of all series of this name. */
  sum(name: string): number;
  /** Every series as it stands there. */
  series: readonly string[];
  /** What is wrong with it: in its form, or in the names of our own metrics. */
  faults: readonly string[];
};

type Family = { type: string; series: Map<string, number> };

const line =
  /^([a-zA-Z_:][\w:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*"(?:,|(?=\})))*\})? (-?[\d.]+(?:e[+-]?\d+)?|nan|[+-]Inf)$/i; // Prometheus reads NaN in any case, and the library writes it in one of its own

/** Reads the text format 0.0.4. Knows what `promtool check metrics` complains of, as far as it can happen here. */
export function readExposition(text: string): Exposition {
  const families = new Map<string, Family>();
  const values = new Map<string, number>();
  const faults: string[] = text.endsWith('\n') ? [] : ['it does not end with a line feed'];
  let helped = '';
  let current: { name: string; family: Family } | null = null;
  for (const row of text.split('\n').filter((row) => row !== '')) {
    const [, help] = /^# HELP (\S+) \S/.exec(row) ?? [];
    const [, typed, type = ''] = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(row) ?? [];
    if (help) helped = help;
    else if (typed) {
      if (typed !== helped) faults.push(`${typed}: no help`);
      if (families.has(typed)) faults.push(`${typed}: twice`);
      current = { name: typed, family: { type, series: new Map() } };
      families.set(typed, current.family);
    } else {
      const [, name = '', labels = '', value] = line.exec(row) ?? [];
      if (value === undefined) faults.push(`not a sample: ${row}`);
      if (current === null || !belongs(name, current.name, current.family.type))
        faults.push(`not in its family: ${row}`);
      if (values.has(name + labels)) faults.push(`twice: ${row}`);
      values.set(name + labels, Number(value?.replace('Inf', 'Infinity')));
      current?.family.series.set(name + labels, values.get(name + labels)!);
    }
  }
  for (const [name, family] of families) faults.push(...faultsOf(name, family));
  return {
    value: (series) => values.get(series),
    sum: (name) => [...values].reduce((sum, [series, n]) => (series.split('{')[0] === name ? sum + n : sum), 0),
    series: [...values.keys()],
    faults,
  };
}

function belongs(name: string, family: string, type: string): boolean {
  if (type === 'histogram') return [`${family}_bucket`, `${family}_sum`, `${family}_count`].includes(name);
  if (type === 'summary') return [family, `${family}_sum`, `${family}_count`].includes(name);
  return name === family;
}

function faultsOf(name: string, { type, series }: Family): string[] {
  const faults: string[] = [];
  if (type === 'histogram') faults.push(...bucketFaults(name, series));
  if (!name.startsWith('expunge_')) return faults;
  if ((type === 'counter') !== name.endsWith('_total'))
    faults.push(`${name}: only counters end with _total, and all do`);
  if (/_(ms|milliseconds|minutes|hours|kb|percent)(_|$)/.test(name)) faults.push(`${name}: not in a base unit`);
  if (/[A-Z]|(count|sum|bucket)$/.test(name)) faults.push(`${name}: not a name`);
  return faults;
}

/** Buckets hold what those before them hold, and the last one all. Only for a histogram without further labels. */
function bucketFaults(name: string, series: Map<string, number>): string[] {
  const buckets = [...series].filter(([key]) => key.startsWith(`${name}_bucket{le=`) && !key.includes(','));
  if (buckets.length === 0) return [];
  const counts = buckets.map(([, n]) => n);
  const isRising = counts.every((n, i) => i === 0 || n >= counts[i - 1]!);
  const isWhole = series.get(`${name}_bucket{le="+Inf"}`) === series.get(`${name}_count`);
  return isRising && isWhole ? [] : [`${name}: its buckets do not add up`];
}
