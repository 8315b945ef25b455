import { expect, test } from 'vitest';
import { hashList, targetOf } from '../../../src/model/target.ts';

// Redis keys are made of both: a change would make a later version lose sight of targets, runs and lists.

const target = targetOf('https://api.example.com', 'acme');

test('a target is known by its base URL and its account', () => {
  expect(target.fp).toMatch(/^[0-9a-f]{16}$/);
  expect(targetOf('https://api.example.com', 'acme')).toEqual(target);
  const others = [targetOf('https://api.example.com', ''), targetOf('https://api.example.org', 'acme')];
  for (const other of others) expect(other.fp).not.toBe(target.fp);
});

test('a list is known by its rows and its target', () => {
  const list = hashList(target, 'aa');
  expect(list).toMatch(/^[0-9a-f]{64}$/);
  expect(hashList(target, 'aa')).toBe(list);
  expect(hashList(target, 'ab')).not.toBe(list);
  expect(hashList(target, 'aa', 'r1')).not.toBe(list);
  expect(hashList(target, 'aa', 'r1')).not.toBe(hashList(target, 'aa', 'r2'));
  expect(hashList(targetOf('https://api.example.com', ''), 'aa')).not.toBe(list);
});
