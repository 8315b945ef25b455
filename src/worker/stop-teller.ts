import { type Stop, stopText } from '../limiter/stop.ts';
import type { Log } from '../logger.ts';

/** Logs a stop when it begins, when its reason changes and when it is over. */
export function stopTeller(log: Log): (stop: Stop | null) => void {
  let told = '';
  return (stop) => {
    const text = stop === null ? '' : stopText(stop);
    if (text === told) return;
    if (stop === null) log.warn({}, 'the stop is lifted');
    else log.warn({ reason: text }, 'nothing is sent any more');
    told = text;
  };
}
