import { describe, expect, it } from 'vitest';
import { approverText, mayApprove, parseApprover } from '../../../src/model/approver.ts';
import { isSamePerson, nameOfLogin, statedName } from '../../../src/model/person.ts';
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
    ['   ', 'expected a name'],
    ['ROLE:plan', 'role:operate or role:admin'],
    ['role:read', 'role:operate or role:admin'],
    ['role:plan', 'role:operate or role:admin'],
    ['role:owner', 'role:operate or role:admin'],
  ])('refuses "%s"', (text, words) => {
    expect(() => parseApprover(text)).toThrow(words);
  });

  it.each<[approver: string | null, planner: string, who: string, role: Role, isAllowed: boolean]>([
    [null, 'ana', 'ana', 'operate', true],
    ['ben', 'ana', 'ben at laptop', 'operate', true],
    ['ben@one.example', 'ana', 'ben@one.example', 'operate', true],
    ['ben@one.example', 'ana', 'ben@two.example', 'admin', false],
    ['ben', 'ana', 'ben@two.example', 'admin', false],
    ['role:admin', 'ana@one.example', 'ana@two.example', 'admin', true],
    ['ben', 'ana', 'carl', 'admin', false],
    ['ben', 'BEN at other', 'ben', 'admin', false],
    ['role:admin', 'ana', 'dora', 'admin', true],
    ['role:admin', 'ana', 'carl', 'operate', false],
    ['role:operate', 'ana', 'dora', 'admin', true],
    ['role:operate', 'ana', 'ana', 'admin', false],
    ['role:operate', 'ana', ' ANA  at laptop', 'admin', false],
    ['role:operate', 'ana', 'ａｎａ', 'admin', false],
    ['ben', 'ana', 'Ben at laptop', 'operate', true],
    ['role:operate', 'ana', 'eve', 'plan', false],
  ])('%s: of a plan by %s, %s with the role %s: %s', (approver, planner, who, role, isAllowed) => {
    expect(mayApprove(approver, planner, { who, role })).toBe(isAllowed);
  });

  it('is a person, or anyone with a role, in words', () => {
    expect([approverText('ben'), approverText('role:admin')]).toEqual(['ben', 'someone with the role admin']);
  });
});

describe('a name', () => {
  it.each(['ben at corp', 'ben at x at corp', 'Ben At corp', 'ben  at corp'])(
    'that someone states as "%s" is not taken for a login of a machine',
    (stated) => {
      expect(isSamePerson('ben', statedName(stated))).toBe(false);
      expect(isSamePerson('ben at x', statedName(stated))).toBe(false);
    },
  );

  it('of a login is that of its person on every machine, and not that of a longer login', () => {
    const here = nameOfLogin('ben', 'laptop.corp.example');
    expect(here).toBe('ben at laptop.corp.example');
    expect(
      [nameOfLogin('ben', 'server'), 'BEN', nameOfLogin('ben x', 'server')].map((other) => isSamePerson(here, other)),
    ).toEqual([true, true, false]);
  });
});
