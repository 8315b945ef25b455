import type { ProblemDocument } from '../api/problem.ts';
import { address, isMissing, toTrouble } from './api.ts';
import { judgeAnswer, type Trouble } from './trouble.ts';

/**
 * The connection of a page. live: it shows the current state; none: it needs no connection. A trouble gives the reason why it may show an old state.
 */
export type Connection = 'connecting' | 'live' | 'hidden' | 'none' | Trouble;

const silentMs = 15_000; // the server sends about once a second
const retryMs = 2_000;

type Following<T> = {
  path: string;
  event: string;
  /** Reads the data once. */
  read: () => Promise<T>;
  onData: (data: T) => void;
  onState: (state: Connection) => void;
  /** Called if the server has no such thing. */
  onMissing?: () => void;
};

/**
 * Follows an event stream until the returned function is called. While the page is hidden there is no connection. A lost or silent connection is
 * opened again, without end, unless there is no such thing.
 */
export function follow<T>({ path, event, read, onData, onState, onMissing }: Following<T>): () => void {
  let source: EventSource | null = null;
  let timer = 0;
  let isOver = false;

  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const later = (task: () => void, ms: number) => {
    clearTimeout(timer);
    timer = window.setTimeout(task, ms);
  };
  const take = (data: T) => {
    onState('live');
    onData(data);
  };
  // A stream does not show why it was refused or ended. A single answer does: without a session it leads to the login.
  const reopen = () => {
    close();
    read().then(
      (data) => {
        if (isOver || document.hidden) return;
        take(data);
        open();
      },
      (error) => {
        if (isOver || document.hidden) return;
        if (!isMissing(error)) {
          onState(toTrouble(error));
          return later(reopen, retryMs);
        }
        onState('none');
        onMissing?.();
      },
    );
  };
  const open = () => {
    close();
    if (isOver || document.hidden) return;
    let hasData = false;
    const opened = new EventSource(address(path));
    source = opened;
    opened.addEventListener(event, (message) => {
      hasData = true;
      later(reopen, silentMs);
      take(JSON.parse(message.data));
    });
    opened.addEventListener('problem', (message) => {
      hasData = true;
      later(reopen, silentMs);
      onState(judgeAnswer(JSON.parse(message.data) as ProblemDocument));
    });
    opened.addEventListener('error', () => {
      if (source !== opened) return;
      if (hasData) reopen();
      else later(reopen, retryMs); // a stream that is refused repeatedly is not requested more often
    });
    later(reopen, silentMs);
  };
  const watch = () => {
    if (document.hidden) {
      close();
      onState('hidden');
    } else {
      onState('connecting');
      reopen();
    }
  };

  document.addEventListener('visibilitychange', watch);
  open();
  return () => {
    isOver = true;
    document.removeEventListener('visibilitychange', watch);
    close();
  };
}
