import { describe, expect, test } from 'vitest';
import { FirstAnswers, FirstAnswersByRun } from '../../../src/delete/first-answers.ts';
import { status, timeout } from './tries.ts';

type Sent = string | { type: string; body: string };

/** A 200 with this body, as JSON unless it has another type. */
function success(sent: Sent, code = 200) {
  const { type, body } = typeof sent === 'string' ? { type: 'application/json', body: sent } : sent;
  return { ...status(code, type === '' ? {} : { 'content-type': type }), body };
}

const alone = () => new FirstAnswers(async (_name, form) => form);

/** The forms of one run, as Redis has them. */
function openForms() {
  const stored = new Map<string, string>();
  return async (name: string, form: string) => {
    if (form !== '' && !stored.has(name)) stored.set(name, form);
    return stored.get(name) ?? '';
  };
}

/** First answers: these, over and over, until the form is known. */
function learnedFrom(...bodies: Sent[]): FirstAnswers {
  return learn(alone(), ...bodies);
}

function learn(first: FirstAnswers, ...bodies: Sent[]): FirstAnswers {
  for (let n = 0; n < 20; n++) expect(first.fits('views', success(bodies[n % bodies.length]!))).toBe(true);
  return first;
}

const long = (value: string) => `{"${'long'.repeat(300)}":"${value.repeat(300)}`; // of which only the first 2 kB are kept

describe('a success with a body', () => {
  test.each<[first: Sent[], other: Sent]>([
    [['{"ok":true}'], '{"ok":false,"error":"ratelimited"}'],
    [['{"ok":true}'], '{"ok":false}'],
    [['{"ok":true}'], '{"result":"not_found","deleted":0}'],
    [['{"ok":true}'], '{}'],
    [['{"ok":true}'], '{"ok":true,"error":"partial"}'],
    [['{}'], '{"error":"no"}'],
    [['{"ok":true}'], '["no"]'],
    [['{"ok":true}'], '"no"'],
    [['{"ok":true}'], ''],
    [['{"ok":true}'], 'Service temporarily unavailable'],
    [['true'], 'false'],
    [[''], '{"error":"no"}'],
    [['{"ok":true}'], { type: 'text/plain', body: '{"ok":true}' }],
    [['{"ok":true}'], { type: '', body: '{"ok":true}' }],
    [['{"id":"a","ok":true}', '{"id":"b","ok":true,"note":"c"}'], '{"id":"d","ok":false}'],
  ])('of another form than the first 20 does not fit: after %j not %j', (first, other) => {
    const answers = learnedFrom(...first);
    for (const _ of [1, 2, 3]) expect(answers.fits('views', success(other))).toBe(false);
    expect(answers.fits('views', success(first[0]!))).toBe(true);
  });

  test.each<[first: Sent[], other: Sent]>([
    [['{"ok":true}'], ' {"ok": true}\n'],
    [['{"ok":true}'], { type: 'Application/JSON; charset=utf-8', body: '{"ok":true}' }],
    [['{"id":"a","archived":false}'], '{"id":"b","archived":true}'],
    [['{"id":"a"}', '{"id":"b","note":"c"}', '{"id":"c","color":"d"}'], '{"id":"e","note":"f","color":"g"}'],
    [['{"ok":true,"archived":true}', '{"ok":true,"archived":false}'], '{"ok":true,"archived":false}'],
    [['{"a-1":true}', '{"a-2":true}'], '{"a-3":true}'],
    [['{"message":"deleted a"}'], '{"message":"deleted b"}'],
    [[long('a')], long('b')],
    [['["a"]'], '["b","c"]'],
    [['deleted a'], 'deleted b'],
    [[''], ''],
  ])('of the same form fits: after %j also %j', (first, other) => {
    expect(learnedFrom(...first).fits('views', success(other))).toBe(true);
  });

  test('is compared with answers of the same resource and status, and of the same run', () => {
    const runs = new FirstAnswersByRun(async (_run, _name, form) => form);
    for (let n = 0; n < 20; n++) runs.of('r').fits('views', success('{"ok":true}'));
    const other = success('{"error":"no"}');
    expect(runs.of('r').fits('views', other)).toBe(false);
    expect(runs.of('r').fits('annotations', other)).toBe(true);
    expect(runs.of('r').fits('views', success('{"error":"no"}', 202))).toBe(true);
    expect(runs.of('another').fits('views', other)).toBe(true);
  });

  test.each<[first: Sent[], same: Sent, other: Sent]>([
    [['{"ok":true}'], '{"ok":true}', '{"ok":false,"error":"no"}'],
    [['{"id":"a","note":"b"}', '{"id":"a"}'], '{"id":"c"}', '{"error":"no"}'],
    [['{"a-1":true}', '{"a-2":true}'], '{"a-3":true}', 'no'],
    [['deleted a'], 'deleted b', ''],
  ])('is compared with the form that the first process has learned: %j', async (first, same, other) => {
    const share = openForms();
    learn(new FirstAnswers(share), ...first);
    const later = new FirstAnswers(share);
    await later.recall('views', [200, 202]);
    expect([same, other].map((sent) => later.fits('views', success(sent)))).toEqual([true, false]);
  });

  test('is compared with the form of another process once both have learned one', async () => {
    const share = openForms();
    learn(new FirstAnswers(share), '{"ok":true}');
    const other = learn(new FirstAnswers(share), '{"error":"no"}');
    await Promise.resolve();
    expect(other.fits('views', success('{"error":"no"}'))).toBe(false);
    expect(other.fits('views', success('{"ok":true}'))).toBe(true);
  });

  test('is compared with the answers of its own process while Redis is away', async () => {
    const first = new FirstAnswers(() => Promise.reject(new Error('Redis is away')));
    await expect(first.recall('views', [200])).rejects.toThrow('away');
    learn(first, '{"ok":true}');
    await Promise.resolve();
    expect(['{"ok":true}', '{"error":"no"}'].map((sent) => first.fits('views', success(sent)))).toEqual([true, false]);
  });

  test('belongs to a run of which a process remembers a hundred, unless it was halted', () => {
    const runs = new FirstAnswersByRun(async (_run, _name, form) => form);
    const first = runs.of('r');
    runs.forget('r');
    expect(runs.of('r')).not.toBe(first);
    const [used, unused] = [runs.of('used'), runs.of('unused')];
    for (let n = 0; n < 99; n++) {
      runs.of(`r-${n}`);
      expect(runs.of('used')).toBe(used);
    }
    expect(runs.of('unused')).not.toBe(unused);
  });
});

describe('the time without any answer', () => {
  test('begins with the first request that failed, and is over with the first answer', () => {
    const first = alone();
    expect(first.silentMs(5_000)).toBe(0);
    first.note(timeout, 5_000);
    first.note(timeout, 7_000);
    expect([first.silentMs(5_000), first.silentMs(8_000)]).toEqual([0, 3_000]);
    first.note(status(500), 9_000);
    first.note(timeout, 10_000);
    expect([first.hasAnswer, first.silentMs(99_000)]).toEqual([true, 0]);
  });
});
