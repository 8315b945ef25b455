#!/usr/bin/env node
import module from 'node:module';

// Checked before anything else is loaded: an older Node would fail later with a misleading message.
// JavaScript of 2015, except for the imports, so that an older Node can parse this file.
const needed = [22, 19];
const present = process.versions.node.split('.').map(Number);

// SIGUSR1 does nothing here. Without a listener Node would open its debugger, without a password, to every user of the machine. Node itself listens until this line: what a signal opened before is closed.
process.on('SIGUSR1', () => {});
const isDebugged = /--inspect(?!-port)/.test([process.env.NODE_OPTIONS, ...process.execArgv].join(' '));
let looks = 100;
const closeDebugger = () => {
  if (--looks === 0) clearInterval(closing);
  if (isDebugged || !process.features.inspector || !process.getBuiltinModule) return;
  const inspector = process.getBuiltinModule('node:inspector');
  if (inspector.url()) inspector.close();
};
const closing = setInterval(closeDebugger, 20).unref(); // for one signal Node opens it up to three times, and not all of them now
closeDebugger();

// Process 1, the first of a container, gets no signal without a listener: this one listens until a command does.
if (process.pid === 1) {
  process.on('SIGTERM', () => {
    if (process.listenerCount('SIGTERM') === 1) process.exit(143);
  });
}

if (present[0] > needed[0] || (present[0] === needed[0] && present[1] >= needed[1])) {
  if (module.enableCompileCache) module.enableCompileCache();
  import('./commands/line/cli.ts'); // the build makes this './commands/line/cli.js'
} else {
  console.error(`error: expunge needs Node ${needed.join('.')} or newer, this is Node ${process.versions.node}`);
  console.error(
    '  In its repository, `./expunge …` and `npm run …` use a newer one from node_modules (after `npm ci`).',
  );
  process.exitCode = 2;
}
