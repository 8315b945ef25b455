import { expect, test } from 'vitest';
import { describeUsers } from '../../../../src/redis/private/stop.ts';

test.each<[string[], string[]]>([
  [[], []],
  [
    [
      'expunge:12-0a1b2c3d:ledger',
      'expunge:12-0a1b2c3d:presence:worker',
      'expunge:{fp}:Y2h1bmtz',
      'expunge:12-0a1b2c3d:queue',
    ],
    ['worker (pid 12)'],
  ],
  [
    ['expunge:12-0a1b2c3d:presence', 'expunge:13-0a1b2c3d:presence:run'],
    ['pid 12', 'run (pid 13)'],
  ],
  [
    ['', 'expunge:12-0a1b2c3d:ledger'],
    ['pid 12', 'one more connection'],
  ],
  [['', 'someone'], ['2 more connections']],
  [['expunge:{fp}:Y2h1bmtz'], ['an unknown process']],
])('of the connections %o the users are %o', (names, users) => {
  expect(describeUsers(names)).toEqual(users);
});
