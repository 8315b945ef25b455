import { expect, test } from 'vitest';
import { nearestFirst, suggest } from '../../../src/model/suggest.ts';

const known = ['annotations', 'views', 'rate'];

test.each([
  ['annotation', ' Did you mean annotations?'],
  ['VIEW', ' Did you mean views?'],
  ['vews', ' Did you mean views?'],
  ['swiev', ''],
  ['rte', ' Did you mean rate?'],
  ['tare', ' Did you mean rate?'], // two changes are near, whatever the length
  ['tarex', ''],
  ['annnnnotations', ' Did you mean annotations?'], // three are near in 14 letters
  ['anotatoins', ''], // and far in ten
  ['xxxxtations', ''], // four changes in eleven letters are too many
])('%s is mistyped: "%s"', (name, said) => {
  expect(suggest(name, known)).toBe(said);
});

test.each([
  ['id', ['', 'ab'], ''], // what has no letter in its place is not near, however short it is
  ['', ['ab', 'c'], ''],
  ['--dry-run', ['--dry-run'], ''], // the name itself helps nobody
  ['ids', ['row id', 'id s'], " Did you mean 'id s'?"],
  ['user id', ['user_id', '$id'], ' Did you mean user_id?'],
  ['annotation_id', ['annotation`id'], " Did you mean 'annotation`id'?"],
])('%j among %j: "%s"', (name, among, said) => {
  expect(suggest(name, among)).toBe(said);
});

test('where nothing is known nothing is suggested', () => {
  expect(suggest('views', [])).toBe('');
});

test('targets stand in the order of how much their base URL resembles the given one, the same one first', () => {
  const all = ['https://api.example.org', 'https://api.example.com/v2', 'https://api.example.com', 'http://localhost'];
  const sorted = nearestFirst(
    all.map((baseUrl) => ({ baseUrl })),
    { baseUrl: 'https://api.example.com' },
  );
  expect(sorted.map(({ baseUrl }) => baseUrl)).toEqual([all[2], all[0], all[1], all[3]]);
});
