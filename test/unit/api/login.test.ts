import { describe, expect, test } from 'vitest';
import { loginPath, pagePath } from '../../../src/api/login.ts';

describe('the page after a login', () => {
  test.each([
    ['/', '/'],
    ['/runs/20261126-a', '/runs/20261126-a'],
    ['/?q=a%20b&state=cancelled', '/?q=a%20b&state=cancelled'],
    ['/runs/%E0%A4%A', '/runs/%E0%A4%A'],
    ['//evil.example/', '/'],
    ['/\\evil.example/', '/'],
    ['/./\\/evil.example', '/'],
    ['/..//evil.example', '/'],
    ['https://evil.example/', '/'],
    ['javascript:alert(1)', '/'],
    ['/\t/evil.example', '/'],
    ['/login?problem=link', '/'],
    ['/api/v1/runs', '/'],
    ['', '/'],
  ])('of %j is %s', (to, page) => {
    expect(pagePath(to)).toBe(page);
  });

  test('is in the address of the login, unless it is that of all runs', () => {
    expect(loginPath('/')).toBe('/login');
    expect(loginPath('/runs/a', 'credentials')).toBe('/login?problem=credentials&to=%2Fruns%2Fa');
    expect(loginPath('//evil.example', 'link')).toBe('/login?problem=link');
  });
});
