/** The labels of a run, by their names: `{ ticket: 'OPS-77', team: 'ops' }`. */
export type Labels = Readonly<Record<string, string>>;

const maxLabels = 16;
const maxName = 50;
const maxValue = 100;
const name = new RegExp(`^[a-z][a-z\\d_.-]{0,${maxName - 1}}$`);

/** The largest number of characters of all labels of a run. */
export const maxLabelText = maxLabels * (maxName + maxValue + '=,'.length);

/**
 * Reads labels like `ticket=OPS-77,team=ops`, and returns them sorted by name, so that the same labels give the same text. Throws an Error that
 * quotes the label that is wrong.
 */
export function labelsSetting(text: string): string {
  const labels = text.split(',').map((label) => readLabel(label.trim()));
  const names = new Set(labels.map(([name]) => name));
  const twice = labels.find(([name], i) => labels.findIndex(([other]) => other === name) !== i);
  if (twice !== undefined) throw new Error(`expected each label once, got "${twice[0]}" twice`);
  if (names.size > maxLabels) throw new Error(`expected at most ${maxLabels} labels, got ${names.size}`);
  return labels
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map((label) => label.join('='))
    .join();
}

/** The labels of a setting or a record in normal form. Pure. */
export function labelsFrom(setting: string): Labels {
  const parts = setting === '' ? [] : setting.split(',');
  return Object.fromEntries(parts.map((label) => label.split(/=(.*)/s).slice(0, 2)));
}

/** Whether a run has all of these labels. Both in normal form. Pure. */
export function hasLabels(setting: string, wanted: string): boolean {
  const labels = setting.split(',');
  return wanted.split(',').every((label) => labels.includes(label));
}

function readLabel(label: string): [name: string, value: string] {
  const [key = '', given = ''] = label.split(/=(.*)/s);
  const value = given.trim().normalize('NFC'); // `é` has one text, whatever keyboard wrote it
  const isValue = value !== '' && value.length <= maxValue && /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u.test(value);
  if (name.test(key) && isValue) return [key, value];
  throw new Error(`expected labels like ticket=OPS-77,team=ops, got "${label}"`);
}
