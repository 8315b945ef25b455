#!/usr/bin/env node
import module from 'node:module';

// Checked before anything else is loaded: an older Node would fail later with a misleading message.
// JavaScript of 2015, except for the imports, so that an older Node can parse this file.
const needed = [22, 19];
const present = process.versions.node.split('.').map(Number);

// Process 1, the first of a container, gets no signal without a listener: this one listens until a command does.
if (process.pid === 1) {
  process.on('SIGTERM', () => {
    if (process.listenerCount('SIGTERM') === 1) process.exit(143);
  });
}

if (present[0] > needed[0] || (present[0] === needed[0] && present[1] >= needed[1])) {
  if (module.enableCompileCache) module.enableCompileCache();
  import('./commands/cli.ts'); // the build makes this './commands/cli.js'
} else {
  console.error(`error: expunge needs Node ${needed.join('.')} or newer, this is Node ${process.versions.node}`);
  console.error(
    '  In its repository, `./expunge …` and `npm run …` use a newer one from node_modules (after `npm ci`).',
  );
  process.exitCode = 2;
}
