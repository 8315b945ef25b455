const unchanged = /(?:[siu]s|(?:^|[_-])(?:news|series|species))$/;

/** The singular of an English plural that ends in s: `annotation`, `query`, `address`. Words like `news`, and one letter alone, stay as they are. */
export function toSingular(plural: string): string {
  if (plural.length < 2 || unchanged.test(plural)) return plural;
  if (/[^aeiouvk]ies$/.test(plural)) return plural.replace(/ies$/, 'y');
  return plural.replace(/(?:(?<=ss|x|[tnr]ch|sh|status)es|s)$/, '');
}
