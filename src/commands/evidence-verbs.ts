import * as parse from '../config/parse-setting.ts';
import {
  type Command,
  input,
  json,
  type OwnOption,
  ofRuns,
  reason,
  sending,
  share,
  store,
  target,
  targetName,
} from './command.ts';

// What is agreed on before a run, and what proves it afterwards.

const planFile: OwnOption = { flags: '-o, --output <file>', help: 'the file of the plan; needed' };

export const plan: Command = {
  name: 'plan',
  summary: 'seal what a run would delete, where and how, in a file; send nothing',
  arguments: '<files...>',
  settings: [...input, ...targetName, ...ofRuns, 'stateDir', 'keep'],
  options: [
    planFile,
    {
      flags: '--approve-by <name>',
      help: 'who has to apply it: the login or EXPUNGE_USER of somebody else',
      parse: parse.textUpTo(100),
    },
    reason,
    json,
  ],
  examples: [
    ['expunge plan old.csv --resource annotations --output plan.json', 'prints the code of the plan'],
    ['expunge plan old.csv --resource views --rate 200/s --approve-by ben -o plan.json', 'for a second person'],
  ],
  load: () => import('./make-plan.ts'),
};

export const apply: Command = {
  name: 'apply',
  summary: 'carry out a plan, if list, target and rules are as it says; repeat to resume',
  arguments: '<file>',
  settings: [...target, ...sending, ...store, 'keep'],
  options: [
    { flags: '--code <code>', help: 'the code of the plan, instead of typing it' },
    { flags: '--detach', help: 'leave the deleting to the workers of this target' },
    share,
    json,
    reason,
  ],
  examples: [
    ['expunge apply plan.json', 'shows the plan and asks for its code'],
    ['expunge apply plan.json --code K7QD-M4TZ --detach', 'with the workers'],
  ],
  load: () => import('./apply.ts'),
};

export const certificate: Command = {
  name: 'certificate',
  summary: 'check a certificate that report --certificate wrote',
  settings: [],
  examples: [['expunge certificate verify proof.ndjson', 'whether anything in it was changed']],
  subcommands: [
    {
      name: 'verify',
      summary: 'tell whether a certificate is as it was written, else which line is not; needs no Redis',
      arguments: '<file>',
      settings: [],
      options: [{ flags: '--public-key <file>', help: 'the Ed25519 key that must have signed it, in PEM' }, json],
      examples: [
        ['expunge certificate verify proof.ndjson', 'exits 1 and names the line if anything was changed'],
        ['expunge certificate verify proof.ndjson --public-key public.pem', 'and who signed it'],
      ],
      withoutSettings: true,
      load: () => import('./certificate.ts'),
    },
  ],
  load: null,
};
