/** The floors of src/README.md, the highest first. A file imports from its own floor and those below. */
export const floors = [
  '^src/bin\\.js$',
  '^src/dashboard/',
  '^src/(commands|api)/',
  '^src/operations/',
  '^src/worker/http/',
  '^src/(worker|terminal)/',
  '^src/(schedule|queue|delete|results|notify|sandbox)/',
  '^src/report/',
  '^src/(history|lookup)/',
  '^src/ledger/',
  '^src/(input|limiter)/',
  '^src/redis/private/',
  '^src/(redis|token)/',
  '^src/(config|help|http)/',
  '^src/[a-z-]+\\.ts$', // errors, words, logger: what every floor uses
  '^src/model/',
];

const upwards = floors.slice(1).map((floor, n) => ({
  name: `floor-${n + 2}-knows-none-above`,
  severity: 'error',
  from: { path: floor, pathNot: floors.slice(0, n + 1) },
  to: { path: floors.slice(0, n + 1), pathNot: floors.slice(n + 1) },
}));

/** A package that only these files import. */
const only = (name, packages, files) => ({
  name,
  severity: 'error',
  from: { path: '^src/', pathNot: files },
  to: { path: packages },
});

const npm = (...names) => names.map((name) => `(^|/)node_modules/${name}/`);

export default {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'on-a-floor', severity: 'error', from: { path: '^src/.*\\.[jt]s$', pathNot: floors }, to: {} },
    ...upwards,
    only('bullmq-in-queue', npm('bullmq'), ['^src/queue/']),
    only('undici-where-requests-are-sent', npm('undici'), [
      '^src/delete/send-delete\\.ts$',
      '^src/token/token-request\\.ts$',
      '^src/http/send-once\\.ts$',
    ]),
    only('oauth-where-tokens-are-asked-for', npm('oauth4webapi'), ['^src/token/token-request\\.ts$']),
    only('http-is-served-in-two-folders', npm('hono', '@hono', 'zod'), ['^src/worker/http/', '^src/api/']),
    only('metrics-in-one-folder', npm('@prometheus-io'), ['^src/worker/http/']),
    only('terminal-packages', npm('commander', '@clack', 'log-update'), ['^src/commands/', '^src/terminal/']),
    {
      name: 'api-knows-no-command',
      comment: 'What both do is an operation.',
      severity: 'error',
      from: { path: '^src/api/' },
      to: { path: '^src/commands/' },
    },
    {
      name: 'model-imports-itself',
      severity: 'error',
      from: { path: '^src/model/' },
      to: { pathNot: ['^src/model/', '^(node:)?crypto$', ...npm('canonicalize')] },
    },
  ],
  options: { parser: 'swc', tsPreCompilationDeps: true, doNotFollow: { path: 'node_modules' } },
};
