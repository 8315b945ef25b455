import { describe, expect, it } from 'vitest';
import { BorrowedToken, hearBorrower, loanOf, type TokenReport } from '../../../src/token/borrowed-token.ts';
import { fixedToken } from '../../../src/token/fixed-token.ts';
import { RefreshingToken } from '../../../src/token/refreshing-token.ts';
import { refused } from '../../../src/token/token.ts';

function borrow(loan = { header: 'Bearer a' as string | null, waiting: '' }) {
  const reports: TokenReport[] = [];
  const noted: string[] = [];
  const token = new BorrowedToken(loan, (report) => reports.push(report));
  token.onChange(() => noted.push(`changed to ${token.authorization()}`));
  token.onRefused((reason) => noted.push(`halt: ${reason}`));
  return { token, reports, noted };
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

  it('is not sent again once it was refused, also where the lender has not heard of that yet', () => {
    const { token, reports } = borrow();
    for (let n = 0; n < 3; n++) expect(token.refused('Bearer a')).toBe('again');
    expect(reports).toEqual([{ refused: 'Bearer a' }]);
    token.receive({ header: 'Bearer a', waiting: '' });
    expect([token.authorization(), token.waiting]).toEqual([null, 'the API refused the token (401), getting another']);
    token.receive({ header: 'Bearer b', waiting: '' });
    expect(token.authorization()).toBe('Bearer b');
    expect(token.refused('Bearer a')).toBe('again');
    expect([token.authorization(), reports.length]).toEqual(['Bearer b', 1]);
  });

  it('reports that a header works once', () => {
    const { token, reports } = borrow();
    for (let n = 0; n < 3; n++) token.accepted();
    token.receive({ header: 'Bearer b', waiting: '' });
    token.accepted();
    expect(reports).toEqual([{ accepted: 'Bearer a' }, { accepted: 'Bearer b' }]);
  });

  it('halts the run once the lender has given up, and is no token from then on', async () => {
    const { token, noted } = borrow();
    token.refuseForGood('refused');
    token.receive({ header: 'Bearer b', waiting: '' });
    expect(noted).toEqual(['halt: refused']);
    expect([token.authorization(), token.waiting]).toEqual([null, 'refused']);
    expect(token.refused('Bearer b')).toEqual({ halt: 'refused' });
    await expect(token.start()).rejects.toMatchObject({ code: 'CREDENTIALS', message: 'refused' });
  });
});

describe('the lender', () => {
  it('halts the run for a fixed token that was refused', () => {
    const token = fixedToken('a', 'EXPUNGE_TOKEN');
    expect(loanOf(token)).toEqual({ header: 'Bearer a', waiting: '' });
    expect(hearBorrower(token, { accepted: 'Bearer a' })).toBeNull();
    expect(hearBorrower(token, { refused: 'Bearer a' })).toBe('the API refused the token from EXPUNGE_TOKEN (401)');
  });

  it('replaces one token once, however many processes report that it was refused', async () => {
    let issued = 0;
    const issue = async () =>
      issued < 2 ? { kind: 'issued' as const, header: `Bearer ${++issued}`, lifeMs: 60_000 } : refused('no more');
    let now = 0;
    const token = new RefreshingToken({ source: 'test', issue }, { clock: () => now, random: () => 0.5 });
    await token.start();
    now = 10_000;
    hearBorrower(token, { accepted: 'Bearer 1' });
    for (let n = 0; n < 3; n++) expect(hearBorrower(token, { refused: 'Bearer 1' })).toBeNull();
    await expect.poll(() => loanOf(token)).toEqual({ header: 'Bearer 2', waiting: '' });
    expect(hearBorrower(token, { refused: 'Bearer 1' })).toBeNull();
    expect([loanOf(token).header, issued]).toEqual(['Bearer 2', 2]);
    await token.close();
  });
});
