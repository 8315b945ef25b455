import { withoutUrlSecrets } from '../config/parse-setting.ts';

/** As a shell takes it for one word. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A command line as somebody would type it again; `***` stands for what may be a secret, which is only said where it was typed. */
export function commandLine(args: readonly string[]): string {
  const shown = args.map((word, n) => {
    if (args[n - 1] === '--token-command') return '***';
    if (word.startsWith('--token-command=')) return '--token-command=***';
    return word.includes('://') ? withoutUrlSecrets(word) : word;
  });
  return ['expunge', ...shown.map(shellWord)].join(' ');
}
