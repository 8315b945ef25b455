/**
 * Reads the rungs of `--canary`: `1,10,100` = the first id, then up to 10, then up to 100, then all. Throws an Error that says what was expected.
 */
export function parseCanary(text: string): number[] {
  const rungs = text.split(',').map((part) => Number(/^ *(\d{1,6}) *$/.exec(part)?.[1] ?? 0));
  const isRising = rungs.every((rung, i) => rung > (rungs[i - 1] ?? 0));
  if (isRising && rungs.length <= maxRungs) return rungs;
  throw new Error(`expected up to ${maxRungs} rising numbers of ids like 1,10,100, got "${text}"`);
}

const maxRungs = 8;

/** Normalizes `--max-failures`: `10` ids, or `2.5%` of the ids that have an outcome. Throws an Error that says what was expected. */
export function parseMaxFailures(text: string): string {
  const [, number = '', percent = ''] = /^(\d{1,12}(?:\.\d{1,3})?)(%?)$/.exec(text) ?? [];
  const isValid = number !== '' && (percent === '' ? !number.includes('.') : Number(number) <= 100);
  if (isValid) return `${Number(number)}${percent}`;
  throw new Error(`expected a number of ids like 10, or a share like 2.5%, got "${text}"`);
}

/**
 * Reads the lowest and highest count that `--expect-count` accepts: `250000`, `250000±5%` or `250000+-100`. Throws an Error that says what was
 * expected.
 */
function readExpectedCount(text: string): [min: number, max: number] {
  const [, count = '', within = '0', percent = ''] =
    /^(\d{1,15})(?:(?:±|\+-|\+\/-)(\d{1,15}(?:\.\d{1,3})?)(%?))?$/.exec(text.replaceAll(' ', '')) ?? [];
  if (count === '') throw new Error(`expected a number of ids like 250000, 250000±5% or 250000+-100, got "${text}"`);
  const ids = Number(count);
  const room = percent === '' ? Number(within) : (ids * Number(within)) / 100;
  return [Math.max(0, Math.ceil(ids - room)), Math.floor(ids + room)];
}

/** Checks `--expect-count` and returns it as given. Throws what `readExpectedCount` throws. */
export function parseExpectedCount(text: string): string {
  readExpectedCount(text);
  return text;
}

/** Why a list with this many ids, or rows of another kind, is not the expected one; null = it is. */
export function unexpectedCount(expected: string, ids: number, what = 'ids', flag = '--expect-count'): string | null {
  const [min, max] = readExpectedCount(expected);
  if (ids >= min && ids <= max) return null;
  return `the list holds ${ids.toLocaleString('en-US')} ${what}, ${flag} is ${expected}`;
}

/** Why a list without rows is not accepted; null = it is. An export that failed leaves the same list as an export that found nothing. */
export function explainEmptyList(rows: number, { allowEmpty }: { allowEmpty: boolean }): string | null {
  return rows > 0 || allowEmpty ? null : 'the list is empty: 0 rows';
}

/**
 * Why a run of this many ids is not accepted; null = it is. `maxDeletes`: undefined or null = any number. `isPartial`: only the first ids are to be
 * sent, on purpose. `what`: the subject of the sentence, with its verb.
 */
export function explainExcess(
  ids: number,
  { maxDeletes, isPartial }: { maxDeletes: number | null | undefined; isPartial: boolean },
  what = 'the list holds',
): string | null {
  if (maxDeletes === undefined || maxDeletes === null || ids <= maxDeletes || isPartial) return null;
  return `${what} ${ids.toLocaleString('en-US')} ids, --max-deletes allows ${maxDeletes.toLocaleString('en-US')}`;
}
