import type { ProblemDocument } from '../api/problem.ts';
import { sentence } from './format.ts';

/** The fields of a problem document that a page shows. */
export type ProblemWords = Partial<Pick<ProblemDocument, 'title' | 'detail' | 'next'>>;

/** Why a page cannot show the current state: what is known, and what its reader can do. Pages try again by themselves. */
export type Trouble = { title: string; detail: string; advice: string };

/** What a server, or a proxy in front of it, answered instead; status 0 = nothing. */
type Answer = ProblemWords & { status: number };

const runsGoOn = 'Runs do not need this page, and continue without it if their workers can.';

export const noAnswer: Trouble = {
  title: 'The server does not answer',
  detail: '',
  advice: `${runsGoOn} Check that the server of this page still runs, and that you are online.`,
};

/** The meaning of an answer, for people. Pure. */
export function judgeAnswer({ status, title = '', detail = '' }: Answer): Trouble {
  if (status === 0) return noAnswer;
  if (status === 502 || status === 504)
    return {
      title: `A proxy answers ${status} in place of the server`,
      detail: 'The server behind it does not answer.',
      advice: `${runsGoOn} Check that the server of this page still runs.`,
    };
  if (/\bRedis\b/.test(detail))
    return {
      title: 'Redis does not answer',
      detail: sentence(detail),
      advice: 'A process that cannot reach Redis sends nothing. Runs continue by themselves once Redis is back.',
    };
  if (status >= 500)
    return {
      title: 'The server has a fault',
      detail: sentence(detail || title || `It answered ${status}`),
      advice: `${runsGoOn} Tell whoever runs the server: its log has the cause.`,
    };
  return {
    title: 'The server refuses to show this',
    detail: sentence(detail || title || `It answered ${status}`),
    advice: 'If it stays so, ask whoever gave you your token.',
  };
}
