import { describe, expect, it } from 'vitest';
import { commandLine } from '../../../src/terminal/style.ts';

describe('shell word', () => {
  describe('the command line that is shown again', () => {
    it('is what was typed, as a shell takes it', () => {
      const typed = [
        'run',
        'old ids.csv',
        '--rate',
        '200/s',
        '--reason',
        "it's time",
        '--base-url',
        'https://a.example/x',
      ];
      expect(commandLine('expunge', typed)).toBe(
        "expunge run 'old ids.csv' --rate 200/s --reason 'it'\\''s time' --base-url https://a.example/x",
      );
    });

    it.each([
      [['--proxy', 'http://ana:geheim@proxy.example:3128'], "--proxy 'http://***@proxy.example:3128'"],
      [['--proxy=http://geheim@proxy.example:3128'], "'--proxy=http://***@proxy.example:3128'"],
      [['--proxy', 'http://ana:ge:he@im@p'], "--proxy 'http://***@p'"],
      [['--token-command', 'curl -H "X-Key: geheim" https://auth'], "--token-command '***'"],
      [['--token-command=echo geheim'], "'--token-command=***'"],
      [['--token-url', 'https://auth.example/token?key=geheim'], "--token-url 'https://auth.example/token?***'"],
      [['--base-url', 'https://ana:geheim@api.example'], "--base-url 'https://***@api.example'"],
    ])('has no secret of %j', (typed, shown) => {
      expect(commandLine('expunge', ['run', 'x.csv', ...typed])).toBe(`expunge run x.csv ${shown}`);
    });

    it('leaves all else as it was: files and addresses of mail, too', () => {
      const typed = ['run', 'list@home/old?.csv', '--reason', 'ana@example.com?'];
      expect(commandLine('expunge', typed)).toBe("expunge run 'list@home/old?.csv' --reason 'ana@example.com?'");
    });
  });
});
