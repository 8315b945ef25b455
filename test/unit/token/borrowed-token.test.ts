import { describe, expect, it } from 'vitest';
import { BorrowedToken, hearBorrower, loanOf, type TokenReport } from '../../../src/token/borrowed-token.ts';
import { fixedToken } from '../../../src/token/fixed-token.ts';

function borrow(loan = { header: 'Bearer a' as string | null, waiting: '' }) {
  const reports: TokenReport[] = [];
  const noted: string[] = [];
  let now = 0;
  const token = new BorrowedToken(
    loan,
    (report) => reports.push(report),
    () => now,
  );
  const pass = (ms: number) => {
    now += ms;
  };
  token.onChange(() => noted.push(`changed to ${token.authorization()}`));
  token.onRefused((reason) => noted.push(`halt: ${reason}`));
  return { token, reports, noted, pass };
}

describe('a borrowed token', () => {
  it('is what the lender has, and waits for the reason of the lender', async () => {
    const { token, noted } = borrow();
    await token.start();
    expect([token.authorization(), token.waiting]).toEqual(['Bearer a', '']);
    token.receive({ header: 'Bearer a', waiting: '' });
    token.receive({ header: null, waiting: 'no answer' });
    expect([token.authorization(), token.waiting]).toEqual([null, 'no answer']);
    token.receive({ header: 'Bearer b', waiting: '' });
    expect(noted).toEqual(['changed to null', 'changed to Bearer b']);
  });

  it('is asked again now and then once it was refused, until one request gets through, and all of that is reported', () => {
    const { token, reports, pass } = borrow();
    for (let n = 0; n < 3; n++) expect(token.refused('Bearer a', 'no')).toBe('again');
    expect(reports).toEqual(Array(3).fill({ refused: 'Bearer a', said: 'no' }));
    token.receive({ header: 'Bearer a', waiting: '' });
    expect([token.authorization(), token.waiting]).toEqual([
      null,
      'the API refused the token (401): no; asking again with the same one in 1 s',
    ]);
    pass(100);
    expect(token.authorization()).toBe('Bearer a');
    token.sent('Bearer a');
    expect(token.authorization()).toBeNull();
    token.accepted('Bearer a');
    expect([token.authorization(), reports.at(-1)]).toEqual(['Bearer a', { accepted: 'Bearer a' }]);
    token.receive({ header: 'Bearer b', waiting: '' });
    expect(token.authorization()).toBe('Bearer b');
  });

  it('reports twice a second at most that a header works', () => {
    const { token, reports, pass } = borrow();
    for (let n = 0; n < 3; n++) token.accepted('Bearer a');
    token.receive({ header: 'Bearer b', waiting: '' });
    for (let n = 0; n < 3; n++) token.accepted('Bearer b');
    expect(reports).toEqual([{ accepted: 'Bearer a' }, { accepted: 'Bearer b' }]);
    pass(500);
    token.accepted('Bearer b');
    expect(reports).toHaveLength(3);
  });

  it('halts the run once the lender has given up, and is no token from then on', async () => {
    const { token, noted } = borrow();
    token.refuseForGood('refused');
    token.receive({ header: 'Bearer b', waiting: '' });
    expect(noted).toEqual(['halt: refused']);
    expect([token.authorization(), token.waiting]).toEqual([null, 'refused']);
    expect(token.refused('Bearer b', '')).toEqual({ halt: 'refused' });
    await expect(token.start()).rejects.toMatchObject({ code: 'CREDENTIALS', message: 'refused' });
  });
});

describe('the lender', () => {
  it('halts the run for a fixed token that its borrowers saw refused for 8 s', () => {
    let now = 0;
    const token = fixedToken('a', 'EXPUNGE_TOKEN', () => now);
    expect(loanOf(token)).toEqual({ header: 'Bearer a', waiting: '' });
    const report = { refused: 'Bearer a', said: 'no' };
    for (; now < 8_000; now += 1_000) expect(hearBorrower(token, report)).toBeNull();
    expect(hearBorrower(token, report)).toBe('the API refused the token from EXPUNGE_TOKEN (401): no');
  });

  it('halts nothing while it works for one of its borrowers', () => {
    let now = 0;
    const token = fixedToken('a', 'EXPUNGE_TOKEN', () => now);
    for (; now < 60_000; now += 500) {
      expect(hearBorrower(token, { accepted: 'Bearer a' })).toBeNull();
      for (let n = 0; n < 20; n++) expect(hearBorrower(token, { refused: 'Bearer a', said: '' })).toBeNull();
    }
  });
});
