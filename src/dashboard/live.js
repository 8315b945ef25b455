import { address, isMissing, problemText } from './api.js';

/** @typedef {'connecting' | 'live' | 'lost' | 'hidden' | 'none'} Connection */

const silentMs = 15_000; // the server sends about once a second
const retryMs = 2_000;

/**
 * Follows an event stream until the returned function is called. While nobody looks at the page there is no connection; one that is lost or
 * silent is opened again, without end, unless there is no such thing.
 *
 * @param {{ path: string, event: string, read: () => Promise<any>, onData: (data: any) => void, onState: (state: Connection) => void,
 *   onProblem: (words: string) => void, onMissing?: () => void }} options `read`: asks for the same once; `onProblem`: what the server says instead
 *   of data; `onMissing`: it has no such thing
 * @returns {() => void}
 */
export function follow({ path, event, read, onData, onState, onProblem, onMissing }) {
  /** @type {EventSource | null} */
  let source = null;
  let timer = 0;
  let isOver = false;
  let hasData = false;

  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  /** @param {() => void} task @param {number} ms */
  const later = (task, ms) => {
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
