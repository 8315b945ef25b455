import { address, isMissing, problemText } from './api.ts';

/** How a page is connected; none: it needs no connection. */
export type Connection = 'connecting' | 'live' | 'lost' | 'hidden' | 'none';

const silentMs = 15_000; // the server sends about once a second
const retryMs = 2_000;

type Following<T> = {
  path: string;
  event: string;
  /** Asks for the same once. */
  read: () => Promise<T>;
  onData: (data: T) => void;
  onState: (state: Connection) => void;
  /** What the server says instead of data. */
  onProblem: (words: string) => void;
  /** The server has no such thing. */
  onMissing?: () => void;
};

/**
 * Follows an event stream until the returned function is called. While nobody looks at the page there is no connection; one that is lost or
 * silent is opened again, without end, unless there is no such thing.
 */
export function follow<T>({ path, event, read, onData, onState, onProblem, onMissing }: Following<T>): () => void {
  let source: EventSource | null = null;
  let timer = 0;
  let isOver = false;
  let hasData = false;

  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const later = (task: () => void, ms: number) => {
    clearTimeout(timer);
    timer = window.setTimeout(task, ms);
  };
  const reopen = () => {
    close();
    // A stream does not say why it was refused. A single answer does: without a session it leads to the login.
    read().then(
      (data) => {
        if (isOver) return;
        hasData = true;
        onData(data);
        open();
      },
      (error) => {
        if (isOver) return;
        if (!isMissing(error)) return later(reopen, retryMs);
        onState('none');
        onMissing?.();
      },
    );
  };
  const lost = () => {
    if (hasData) onState('lost');
    later(reopen, hasData ? retryMs : 0);
  };
  const open = () => {
    close();
    if (isOver || document.hidden) return;
    const opened = new EventSource(address(path));
    source = opened;
    opened.addEventListener(event, (message) => {
      hasData = true;
      onState('live');
      later(lost, silentMs);
      onData(JSON.parse(message.data));
    });
    opened.addEventListener('problem', (message) => {
      later(lost, silentMs);
      onProblem(problemText(JSON.parse(message.data)));
    });
    opened.addEventListener('error', () => {
      if (source === opened) lost();
    });
    later(lost, silentMs);
  };
  const watch = () => {
    if (document.hidden) {
      close();
      onState('hidden');
    } else {
      onState('connecting');
      open();
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
