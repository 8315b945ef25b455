import { describe, expect, it } from 'vitest';
import { approverText, mayApprove, parseApprover } from '../../../src/model/approver.ts';
import type { Role } from '../../../src/model/role.ts';

describe('--approve-by', () => {
  it.each([
    ['ben', 'ben'],
    [' ben@laptop ', 'ben@laptop'],
    ['role:admin', 'role:admin'],
    ['role:operate', 'role:operate'],
    ['Role: Admin', 'role:admin'],
  ])('takes "%s"', (text, approver) => {
    expect(parseApprover(text)).toBe(approver);
  });

  it.each([
    ['', 'expected a name'],
    [' @laptop', 'expected a name'],
    ['ROLE:plan', 'role:operate or role:admin'],
    ['role:read', 'role:operate or role:admin'],
    ['role:plan', 'role:operate or role:admin'],
    ['role:owner', 'role:operate or role:admin'],
  ])('refuses "%s"', (text, words) => {
    expect(() => parseApprover(text)).toThrow(words);
  });

  it.each<[approver: string | null, planner: string, who: string, role: Role, isAllowed: boolean]>([
    [null, 'ana', 'ana', 'operate', true],
    ['ben', 'ana', 'ben@laptop', 'operate', true],
    ['ben', 'ana', 'carl', 'admin', false],
    ['ben', 'BEN@other', 'ben', 'admin', false],
    ['role:admin', 'ana', 'dora', 'admin', true],
    ['role:admin', 'ana', 'carl', 'operate', false],
    ['role:operate', 'ana', 'dora', 'admin', true],
    ['role:operate', 'ana', 'ana', 'admin', false],
    ['role:operate', 'ana', ' ANA @laptop', 'admin', false],
    ['role:operate', 'ana', 'ａｎａ', 'admin', false],
    ['ben', 'ana', 'Ben @laptop', 'operate', true],
    ['role:operate', 'ana', 'eve', 'plan', false],
  ])('%s: of a plan by %s, %s with the role %s: %s', (approver, planner, who, role, isAllowed) => {
    expect(mayApprove(approver, planner, { who, role })).toBe(isAllowed);
  });

  it('is a person, or anyone with a role, in words', () => {
    expect([approverText('ben'), approverText('role:admin')]).toEqual(['ben', 'someone with the role admin']);
  });
});
