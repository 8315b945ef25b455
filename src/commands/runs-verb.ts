import type { Command } from './command.ts';
import { json, reason, store, yes } from './shared-options.ts';

export const runs: Command = {
  name: 'runs',
  summary: 'list the runs that Redis knows',
  settings: store,
  options: [json],
  examples: [
    ['expunge runs', 'newest first'],
    ['expunge runs remove 20261120-1602-m4tz', 'forget an ended run'],
  ],
  subcommands: [
    {
      name: 'remove',
      summary: 'remove an ended run from Redis; its report files stay',
      arguments: '<run>',
      settings: store,
      options: [yes, reason],
      examples: [
        ['expunge runs remove 20261120-1602-m4tz', 'asks first'],
        ['expunge runs remove 20261120-1602-m4tz --yes --reason "a trial"', 'for scripts'],
      ],
      load: () => import('./runs.ts'),
    },
  ],
  load: () => import('./runs.ts'),
};
