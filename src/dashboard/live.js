import { address, get, problemText } from './api.js';

/** @typedef {'connecting' | 'live' | 'lost' | 'hidden'} Connection */

const silentMs = 15_000; // the server sends about once a second
const retryMs = 2_000;

/**
 * Follows an event stream until the returned function is called. While nobody looks at the page there is no connection; one that is lost or
 * silent is opened again, without end.
 *
 * @param {string} path
 * @param {string} event
 * @param {(data: any) => void} onData
 * @param {(state: Connection) => void} onState
 * @param {(words: string) => void} onProblem what the server says instead of data
 * @returns {() => void}
 */
export function follow(path, event, onData, onState, onProblem) {
  /** @type {EventSource | null} */
  let source = null;
  let timer = 0;
  let isOver = false;

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
    // A stream does not say why it was refused. This does: without a session it leads to the login.
    get('/me').then(open, () => later(reopen, retryMs));
  };
  const lost = () => {
    onState('lost');
    later(reopen, retryMs);
  };
  const open = () => {
    close();
    if (isOver || document.hidden) return;
    const opened = new EventSource(address(path));
    source = opened;
    opened.addEventListener(event, (message) => {
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
