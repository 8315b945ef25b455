import * as s from './servers.ts';
import { type Scenario, seeded, type Wants } from './world.ts';

export const scenarios: Scenario[] = [];
const stationary: Wants = { used: 0.95, refused: 0.005 };
type Part = Partial<Scenario> & Pick<Scenario, 'server'>;
const add = (group: string, name: string, part: Part) =>
  scenarios.push({ group, name, seconds: 120, from: 30, latencyMs: 30, ...part });

// ---- A: stationary limits, no headers ----
for (const [burst, b] of [
  ['1 request', 0],
  ['5 %', 0.05],
  ['1 s', 1],
  ['10 s', 10],
] as const)
  add('bucket', `300/s, burst ${burst}`, {
    server: () => s.tokenBucket(300, b),
    want: stationary,
    ...(b === 10 ? { seconds: 240, from: 60 } : {}),
  });
add('bucket', '3000/s, burst 1 request', { server: () => s.tokenBucket(3000, 0), want: stationary });
add('bucket', '3000/s, burst 1 s', { server: () => s.tokenBucket(3000, 1), want: stationary });
for (const [limit, seconds, from] of [
  [0.2, 3600, 900],
  [1, 1200, 300],
  [5, 400, 100],
  [20, 240, 60],
  [100, 120, 30],
  [1000, 120, 30],
  [10000, 60, 30],
] as const) {
  add('limits', `${limit}/s, burst 1 s`, {
    server: () => s.tokenBucket(limit, 1),
    seconds,
    from,
    latencyMs: 10,
    want: stationary,
  });
  if (limit >= 1 && limit <= 100)
    add('limits', `${limit}/s, burst 1 request`, {
      server: () => s.tokenBucket(limit, 0),
      seconds,
      from,
      latencyMs: 10,
      want: stationary,
    });
}
add('leaky', 'nginx 300 r/s burst=20 (delays)', { server: () => s.leakyDelay(300, 20), want: stationary });
add('leaky', 'nginx 300 r/s burst=300 (delays)', { server: () => s.leakyDelay(300, 300), want: stationary });
add('leaky', 'nginx 20 r/s burst=10 (delays)', {
  server: () => s.leakyDelay(20, 10),
  seconds: 240,
  from: 60,
  want: stationary,
});
add('window', '300 per 1 s', { server: () => s.fixedWindow(300, 1000), want: stationary });
add('window', '300 per 1 s, begins with a request', {
  server: () => s.fixedWindow(300, 1000, false),
  want: stationary,
});
add('window', '3000 per 10 s', { server: () => s.fixedWindow(300, 10_000), seconds: 180, from: 60, want: stationary });
add('window', '3000 per 60 s', {
  server: () => s.fixedWindow(50, 60_000),
  seconds: 637.8,
  from: 157.8,
  want: stationary,
});
add('window', '18000 per 60 s', {
  server: () => s.fixedWindow(300, 60_000),
  seconds: 637.8,
  from: 157.8,
  want: stationary,
});
add('window', '3600 per 1 h', {
  server: () => s.fixedWindow(1, 3_600_000),
  processes: 1,
  seconds: 3600 * 4 - 1332,
  from: 3600 - 1332,
  want: stationary,
});
add('sliding', 'log 300 per 1 s', { server: () => s.slidingLog(300, 1000), want: stationary });
add('sliding', 'log 18000 per 60 s', {
  server: () => s.slidingLog(300, 60_000),
  seconds: 600,
  from: 120,
  want: stationary,
});
add('sliding', 'counter 300 per 1 s', { server: () => s.slidingCounter(300, 1000), want: stationary });
add('sliding', 'counter 18000 per 60 s', {
  server: () => s.slidingCounter(300, 60_000),
  seconds: 600,
  from: 120,
  want: stationary,
});
add('concurrency', '429 above 20 at once, 50 ms', {
  server: (r) => s.concurrency(20, 50, r),
  places: 20,
  latencyMs: 5,
  want: { used: 0.85, refused: 0.02 },
});
add('concurrency', '429 above 4 at once, 200 ms', {
  server: (r) => s.concurrency(4, 200, r),
  places: 4,
  latencyMs: 5,
  want: { used: 0.8, refused: 0.03 },
});
for (const [places, serviceMs, processes, latencyMs] of [
  [20, 10, 4, 1],
  [20, 100, 4, 1],
  [4, 50, 1, 1],
  [40, 300, 4, 20],
] as const)
  add('concurrency', `queues above ${places} at once, ${serviceMs} ms${processes === 1 ? ', 1 process' : ''}`, {
    server: (r) => s.queueing(places, serviceMs, r),
    processes,
    latencyMs,
    want: { used: 0.9, refused: 0, latencyMs: 2 * (latencyMs + serviceMs) },
  });
add('503', '503 instead of 429, 300/s, burst 5 %', {
  server: () => s.withStatus(s.tokenBucket(300, 0.05), 503),
  want: stationary,
});
add('503', '503 instead of 429, 300 per 1 s', {
  server: () => s.withStatus(s.fixedWindow(300, 1000), 503),
  want: stationary,
});
for (const [limit, processes] of [
  [5, 1],
  [10, 4],
] as const)
  add('503', `503 instead of 429, ${limit}/s, burst 1 s, ${processes} processes`, {
    server: () => s.withStatus(s.tokenBucket(limit, 1), 503),
    processes,
    seconds: 240,
    from: 60,
    want: { used: 0.9, refused: 0.01 },
  });
for (const share of [0.3, 0.1, 0.03])
  add('503', `503 instead of 429, 1000/s × ${share}`, {
    server: () => s.withStatus(s.tokenBucket(1000, 1), 503),
    changes: [[60, 1000 * share]],
    seconds: 260,
    from: 70,
    want: { used: 0.9, refused: 0.01 },
  });
add('503', '503 for 50 %, whatever the rate, of 1000/s', {
  server: (r) => s.randomly(s.tokenBucket(1000, 0.05), 0.5, r, 503),
  possible: () => 1000,
  want: { used: 0.85 },
});
for (const [share, latencyMs] of [
  [0.1, 1],
  [0.2, 1],
  [0.2, 30],
] as const)
  add('503', `500 for ${100 * share} %, whatever the rate, of 1000/s, ${latencyMs} ms`, {
    server: (r) => s.randomly(s.tokenBucket(1000, 0.05), share, r, 500),
    latencyMs,
    seconds: 15,
    from: 3,
    possible: () => 1000,
    want: { used: 0.9 },
  });
add('503', '500 for 10 %, whatever the rate, of 300/s, for minutes', {
  server: (r) => s.randomly(s.tokenBucket(300, 0.05), 0.1, r, 500),
  seconds: 400,
  from: 60,
  possible: () => 300,
  want: { used: 0.9 },
});
add('random', '1 % random 429, limit 100/s, answers of 700 ms', {
  server: (r) => s.randomly(s.tokenBucket(100, 0.05), 0.01, r),
  latencyMs: 700,
  seconds: 180,
  from: 60,
  possible: () => 100,
  want: { used: 0.85 },
});
add('quota', '24000 per 20 min, Retry-After up to 1 h', {
  server: () => s.retryAfterReset(s.fixedWindow(20, 1_200_000)),
  processes: 1,
  seconds: 1200 * 4 - 444,
  from: 1200 - 444,
  want: stationary,
});
add('quota', '24000 per 3 h, Retry-After up to 1 h', {
  server: () => s.retryAfterReset(s.fixedWindow(24000 / 10800, 10_800_000)),
  processes: 1,
  seconds: 10800 * 2 - 3996,
  from: 10800 - 3996,
  want: stationary,
});

// ---- B: refusals that do not depend on the rate ----
for (const p of [0.001, 0.003, 0.01, 0.05]) {
  const want: Wants = { used: p <= 0.01 ? 0.9 : 0.8, refused: 2.5 * p + 0.005 };
  add('random', `${p * 100} % random 429, 3200/s by connections`, {
    server: (r) => s.randomly(s.unlimited(), p, r),
    processes: 1,
    latencyMs: 19,
    jitter: 0,
    possible: () => 3200 * (1 - p),
    want,
  });
  add('random', `${p * 100} % random 429, limit 1000/s`, {
    server: (r) => s.randomly(s.tokenBucket(1000, 0.05), p, r),
    seconds: 180,
    from: 60,
    possible: () => 1000,
    want,
  });
  add('random', `${p * 100} % random 429, limit 20/s`, {
    server: (r) => s.randomly(s.tokenBucket(20, 1), p, r),
    seconds: 600,
    from: 200,
    possible: () => 20,
    want,
  });
}
add('random', '1 % random 429 with Retry-After 1, 1000/s', {
  server: (r) => s.retryAfter(s.randomly(s.tokenBucket(1000, 0.05), 0.01, r), 'seconds'),
  seconds: 180,
  from: 60,
  possible: () => 1000,
  want: { note: 'each costs a second by the server’s own word' },
});
for (const [share, used] of [
  [0.0001, 0.85],
  [0.001, 0.45],
  [0.01, 0.1],
] as const) // what is left beside the waits: 1 ÷ (1 + limit × share × 1 s)
  add('random', `${share * 100} % random 429 with Retry-After 1, limit 1000/s, 1 process`, {
    server: (r) => s.retryAfter(s.randomly(s.tokenBucket(1000, 0.05), share, r), 'seconds'),
    processes: 1,
    seconds: 180,
    from: 60,
    possible: () => 1000,
    want: { used },
  });
add('random', '1 % random 429 from 60 s on, limit 1000/s', {
  server: (r) => {
    const plain = s.tokenBucket(1000, 0.05);
    return {
      ...plain,
      answer: (now, o) =>
        now > 60_000 && r() < 0.01 ? { status: 429, headers: {}, serviceMs: 0 } : plain.answer(now, o),
    };
  },
  seconds: 180,
  from: 60,
  possible: () => 1000,
  want: { used: 0.9 },
});

// ---- C: changes ----
const change = (group: string, form: 'none' | 'seconds' | 'date' | 'told', kind: 'bucket' | 'window' = 'bucket') => {
  const make = (limit: number) => {
    if (form === 'told') return s.telling(s.retryAfterReset(s.fixedWindow(limit, 1000, false)), 'draft-7');
    const plain = kind === 'bucket' ? s.tokenBucket(limit, 0.05) : s.fixedWindow(limit, 1000);
    return form === 'none' ? plain : s.retryAfter(plain, form);
  };
  for (const f of [0.5, 0.1, 0.005])
    add(group, `1000/s × ${f}`, {
      server: () => make(1000),
      seconds: 160,
      from: 100,
      changes: [[60, 1000 * f]],
      want: { follow: 20 },
    });
  for (const [f, follow] of [
    [2, 30],
    [10, 60],
    [100, 120],
  ] as const)
    add(group, `100/s × ${f}`, {
      server: () => make(100),
      latencyMs: 10,
      seconds: f === 100 ? 185 : 120,
      from: f === 100 ? 125 : 90,
      changes: [[60, 100 * f]],
      want: { follow },
    });
};
change('change', 'none');
change('change window', 'none', 'window');
change('change RA seconds', 'seconds');
change('change RA date', 'date');
change('change told', 'told');
add('change', '5/s × 100', {
  server: () => s.tokenBucket(5, 1),
  latencyMs: 10,
  seconds: 250,
  from: 190,
  changes: [[100, 500]],
  want: { follow: 120 },
});
add('change', '1000/s × 0.005, then back', {
  server: () => s.tokenBucket(1000, 0.05),
  seconds: 260,
  from: 220,
  changes: [
    [40, 5],
    [120, 1000],
  ],
  want: { follow: 120 },
});
add('change', '1000/s × 0.001', {
  server: () => s.tokenBucket(1000, 0.05),
  seconds: 200,
  from: 120,
  changes: [[60, 1]],
  want: { follow: 35, note: 'a verdict on 1/s takes 30 s' },
});

// ---- limits and ceilings that vanish ----
for (const [quota, banS] of [
  [100, 6],
  [200, 12],
] as const)
  for (const form of ['none', 'x-epoch-s', 'Retry-After'] as const)
    add('vanish', `${quota} requests, then none for ${banS} s (${form})`, {
      server: () => {
        const bans = s.banning(quota, banS * 1_000, s.tokenBucket(100, 0.05));
        if (form === 'none') return bans;
        return form === 'Retry-After' ? s.retryAfterReset(bans) : s.tellingWhenRefused(bans, form);
      },
      processes: 1,
      seconds: 560,
      from: 500,
      changes: [[100, 100]],
      want: { follow: 300 },
    });
for (const [limit, form] of [
  [4, 'none'],
  [1, 'none'],
  [0.2, 'none'],
  [4, 'seconds'],
  [1, 'seconds'],
] as const)
  add('vanish', `a limit of ${limit}/s${form === 'none' ? '' : ' with Retry-After 1'}`, {
    server: () => {
      const limited = s.tokenBucket(limit, 1 / limit);
      return form === 'none' ? limited : s.retryAfter(limited, form);
    },
    processes: 1,
    seconds: limit < 1 ? 2_900 : 960,
    from: limit < 1 ? 2_800 : 900,
    changes: [[600, 100]],
    want: { follow: 300 },
  });
for (const ceiling of [0.2, 2, 20])
  for (const refused of ['none', '1 %'] as const)
    add('vanish', `a ceiling of ${ceiling}/s for a minute${refused === 'none' ? '' : ', 1 % random 429'}`, {
      server: (r) => s.randomly(s.tokenBucket(300, 0.05), refused === 'none' ? 0 : 0.01, r),
      latencyMs: refused === 'none' ? 400 : 30, // refusals of requests from before are on their way
      ceiling: (now) => (now >= 60_000 && now < 120_000 ? ceiling : 0),
      seconds: 180,
      from: 150,
      changes: [[120, 300]],
      possible: (now) => (now >= 60_000 && now < 120_000 ? ceiling : 300),
      want: { follow: 20, refused: 0.03 },
    });
for (const outages of [1, 2])
  add('vanish', `a run at 5/s that meets ${outages === 1 ? 'a time' : 'two times'} in which all is refused`, {
    server: () => {
      const once = s.downBetween(s.tokenBucket(300, 0.05), 90, 110, 429);
      return outages === 1 ? once : s.downBetween(once, 120, 140, 429);
    },
    paced: (now) => (now >= 60_000 && now < 160_000 ? 5 : Number.POSITIVE_INFINITY),
    seconds: 220,
    from: 190,
    changes: [[160, 300]],
    want: { follow: 60 },
  });
for (const [count, ms, form] of [
  [5, 2_000, 'x-epoch-fraction'],
  [5, 1_000, 'x-epoch-fraction'],
  [5, 2_000, 'x-epoch-s'],
  [5, 5_000, 'x-epoch-fraction'],
] as const)
  add('small windows', `${count} per ${ms / 1_000} s, ${form} + Retry-After`, {
    server: () => s.retryAfterReset(s.telling(s.fixedWindow((count * 1_000) / ms, ms), form)),
    processes: 1,
    latencyMs: 5,
    seconds: 240,
    from: 60,
    want: { used: 0.85, refused: 0.03 },
  });

// ---- refusals and losses that a run meets early, or always ----
for (const atS of [[0.05], [0.02, 0.4], [0.3, 0.31], [0.5, 3]])
  add('early', `429 with Retry-After 1 at ${atS.join(', ')} s, 500/s`, {
    server: () => s.retryAfter(s.refusingAt(s.unlimited(), atS), 'seconds'),
    processes: 1,
    latencyMs: 3,
    paced: () => 500,
    possible: () => 500,
    seconds: 12,
    from: 5,
    want: { used: 0.95, refused: 0 },
  });
for (const processes of [1, 4])
  for (const share of [0.02, 0.06, 0.1, 0.2])
    add('losses', `${share * 100} % lost at any rate, ${processes} process${processes === 1 ? '' : 'es'}`, {
      server: (random) => s.losing(s.unlimited(), share, random),
      processes,
      latencyMs: 50,
      from: 60,
      possible: () => processes * (64 / 0.05) * (1 - share),
      want: { used: 0.85, refused: 1.25 * share },
    });

// ---- D: other tenants ----
const left = { used: 0.85, refused: 0.03 };
add('tenants', '300/s, another takes 100 on and off (30 s)', {
  server: () => s.tokenBucket(300, 0.05),
  seconds: 210,
  others: (now) => (Math.floor(now / 30_000) % 2) * 100,
  want: left,
});
add('tenants', '300/s, another takes about half, as it comes', {
  server: () => s.tokenBucket(300, 0.05),
  seconds: 210,
  others: () => 150,
  want: left,
});
for (const kind of ['draft-7', 'x-epoch-s'] as const)
  add('tenants', `300 per 1 s, ${kind} + Retry-After, another takes 100`, {
    server: () => s.telling(s.retryAfterReset(s.fixedWindow(300, 1000, false)), kind),
    seconds: 210,
    others: () => 100,
    want: { used: 0.75, refused: 0.03 }, // what it lets through of the other one, by chance
  });
add('tenants', '1000/s, bursts of 500/s for 0.5 s of 2', {
  server: () => s.tokenBucket(1000, 0.1),
  seconds: 210,
  others: (now) => (now % 2000 < 500 ? 500 : 0),
  want: left,
});
add('tenants', '300 per 1 s, another takes 100', {
  server: () => s.fixedWindow(300, 1000),
  seconds: 210,
  others: () => 100,
  want: left,
});

// ---- E: headers ----
for (const form of ['seconds', 'date'] as const) {
  for (const [burst, b] of [
    ['5 %', 0.05],
    ['1 s', 1],
  ] as const)
    for (const limit of [20, 300, 3000])
      add('Retry-After', `${limit}/s, burst ${burst}, 1 ${form}`, {
        server: () => s.retryAfter(s.tokenBucket(limit, b), form),
        seconds: limit === 3000 ? 120 : 240,
        from: 60,
        want: stationary,
      });
}
add('Retry-After', '300/s, burst 5 %, 5 s', {
  server: () => s.retryAfter(s.tokenBucket(300, 0.05), 'seconds', () => 5000),
  seconds: 600,
  from: 120,
  want: stationary,
});
add('Retry-After', '300/s, burst 5 %, 30 s', {
  server: () => s.retryAfter(s.tokenBucket(300, 0.05), 'seconds', () => 30_000),
  seconds: 1800,
  from: 300,
  want: stationary,
});
for (const [limit, stillMs, everyMs, used] of [
  [300, 300, 10_000, 0.8],
  [300, 150, 30_000, 0.9],
  [3000, 150, 10_000, 0.85],
] as const)
  add('Retry-After', `${limit}/s, burst 0.1 s, the way stands still for ${stillMs} ms of each ${everyMs} ms`, {
    server: () => s.retryAfter(s.tokenBucket(limit, 0.1), 'seconds'),
    latencyMs: standsStill(stillMs, everyMs),
    seconds: 210,
    from: 30,
    want: { used, refused: 0.02 }, // each costs all of them a second
  });
for (const [q, w] of [
  [300, 1],
  [3000, 10],
  [3000, 60],
] as const)
  for (const kind of ['draft-6', 'draft-7', 'draft-8', 'x-delta', 'x-epoch-s', 'x-epoch-ms'] as const) {
    if (w === 10 && kind !== 'draft-8' && kind !== 'x-epoch-s') continue;
    add('headers', `${q} per ${w} s, ${kind} + Retry-After`, {
      server: () => s.telling(s.retryAfterReset(s.fixedWindow(q / w, w * 1000, false)), kind),
      seconds: w === 60 ? 360 : 240, // in a minute one wait more or less is a hundredth
      from: w === 60 ? 120 : 60,
      want: stationary,
    });
  }
add('headers', '300 per 1 s, Retry-After only', {
  server: () => s.retryAfterReset(s.fixedWindow(300, 1000, false)),
  seconds: 180,
  from: 60,
  want: stationary,
});
for (const stallMs of [40, 100])
  add('headers', `300 per 1 s, Retry-After only, stalls of ${stallMs} ms on the way`, {
    server: () => s.retryAfterReset(s.fixedWindow(300, 1000, false)),
    latencyMs: stalls(stallMs),
    seconds: 120,
    from: 60,
    want: { used: 0.85, refused: 0.005 },
  });
add('headers', '300 per 1 s, Retry-After only, stalls of 40 ms, the first 15 to 45 s', {
  server: () => s.retryAfterReset(s.fixedWindow(300, 1000, false)),
  latencyMs: stalls(40),
  seconds: 45,
  from: 15,
  want: { used: 0.9, refused: 0.005 },
});
add('headers', '300 per 1 s, x-epoch-s + Retry-After, stalls of 40 ms, 15 to 45 s', {
  server: () => s.telling(s.retryAfterReset(s.fixedWindow(300, 1000, false)), 'x-epoch-s'),
  latencyMs: stalls(40),
  seconds: 45,
  from: 15,
  want: { used: 0.95, refused: 0.005 },
});
add('headers', '300 per 1 s, x-epoch-s + Retry-After, stalls of 40 ms', {
  server: () => s.telling(s.retryAfterReset(s.fixedWindow(300, 1000, false)), 'x-epoch-s'),
  latencyMs: stalls(40),
  seconds: 120,
  from: 60,
  want: { used: 0.95, refused: 0.005 },
});
for (const [q, w, processes] of [
  [20, 1, 1],
  [10, 1, 1],
  [3_000, 1, 4],
  [600, 2, 4],
] as const)
  add('headers', `${q} per ${w} s, draft-7 + Retry-After, ${processes} processes`, {
    server: () => s.telling(s.retryAfterReset(s.fixedWindow(q / w, w * 1000, false)), 'draft-7'),
    processes,
    seconds: 240,
    from: 60,
    want: { used: 0.95, refused: 0.005 },
  });
add('headers', '20 per 1 s, Retry-After only, stalls of 40 ms on the way', {
  server: () => s.retryAfterReset(s.fixedWindow(20, 1000, false)),
  latencyMs: stalls(40),
  seconds: 240,
  from: 60,
  want: { used: 0.85, refused: 0.005 },
});
for (const [name, server, used, refused] of [
  ['3000 per 60 s', () => s.fixedWindow(50, 60_000, false), 0.95, 0.005],
  ['3000 per 10 s', () => s.fixedWindow(300, 10_000, false), 0.9, 0.005],
  ['60 per 60 s', () => s.fixedWindow(1, 60_000, false), 0.8, 0.02],
  ['sliding log 3000 per 60 s', () => s.slidingLog(50, 60_000), 0.95, 0.005],
  ['sliding counter 3000 per 60 s', () => s.slidingCounter(50, 60_000), 0.95, 0.005],
] as const)
  add('headers', `${name}, Retry-After 1 whatever is left`, {
    server: () => s.retryAfter(server(), 'seconds'),
    seconds: 900,
    from: 180,
    want: { used, refused },
  });
for (const [q, w] of [
  [600, 60],
  [2000, 60],
  [300, 30],
] as const)
  add('headers', `sliding counter ${q} per ${w} s, x-epoch-ms to the end of its window`, {
    server: () => s.telling(s.slidingCounter(q / w, w * 1_000, 'end'), 'x-epoch-ms'),
    seconds: 18 * w,
    from: 3 * w,
    want: { used: 0.95, refused: 0.01 },
  });
for (const [q, w, used] of [
  [100, 60, 0.6],
  [100, 10, 0.6],
] as const)
  add('headers', `sliding counter ${q} per ${w} s, Retry-After to the end of its window`, {
    server: () => s.retryAfterReset(s.slidingCounter(q / w, w * 1_000, 'end')),
    seconds: 18 * w,
    from: 3 * w,
    want: { used, refused: 0.03 }, // each refusal costs the rest of a window
  });
add('headers', '3000 per 60 s, Retry-After only', {
  server: () => s.retryAfterReset(s.fixedWindow(50, 60_000, false)),
  seconds: 600,
  from: 120,
  want: stationary,
});
add('headers', '3000 per 60 s, draft-8, no Retry-After', {
  server: () => s.telling(s.fixedWindow(50, 60_000, false), 'draft-8'),
  seconds: 360,
  from: 120,
  want: stationary,
});
add('headers', 'sliding log 18000 per 60 s, draft-8', {
  server: () => s.telling(s.slidingLog(300, 60_000), 'draft-8'),
  seconds: 600,
  from: 120,
  want: stationary,
});
add('headers', 'bucket 300/s burst 10 s, draft-8', {
  server: () => s.telling(s.tokenBucket(300, 10), 'draft-8'),
  seconds: 240,
  from: 60,
  want: stationary,
});
for (const kind of [
  'x-wrong',
  'remaining-stuck',
  'remaining-low-stuck',
  'remaining-zero-stuck',
  'reset-past',
  'reset-stuck',
] as const)
  add('headers that lie', `${kind}, bucket 300/s`, {
    server: () => s.telling(s.tokenBucket(300, 0.05), kind),
    seconds: 120,
    from: 60,
    want: stationary,
  });

for (const [name, burst] of [
  ['', 0.05],
  [', burst 1 s', 1],
] as const)
  add('headers that lie', `draft-7 says 300 per 1 s, bucket 200/s${name}, Retry-After 1`, {
    server: () =>
      s.telling(s.retryAfter(s.both(s.tokenBucket(200, burst), s.fixedWindow(300, 1000)), 'seconds'), 'draft-7'),
    seconds: 240,
    from: 60,
    want: { used: 0.62, refused: 0.005 }, // of 300/s
  });
add('headers that lie', 'draft-7 says 300 per 1 s, bucket 200/s, no Retry-After', {
  server: () => s.telling(s.both(s.tokenBucket(200, 0.05), s.fixedWindow(300, 1000)), 'draft-7'),
  seconds: 240,
  from: 60,
  want: { used: 0.64, refused: 0.005 },
});

// ---- F: latency ----
for (const [ms, jitter] of [
  [5, 0.5],
  [50, 0.5],
  [200, 0.5],
  [1000, 0.3],
  [2000, 0.3],
] as const)
  add('latency', `${ms} ms ± ${jitter * 100} %, 300/s`, {
    server: () => s.tokenBucket(300, 0.05),
    latencyMs: ms,
    jitter,
    connections: 256,
    seconds: 180,
    from: 60,
    want: stationary,
  });
add('latency', 'log-normal 50 ms, tail of seconds, 300/s', {
  server: () => s.tokenBucket(300, 0.05),
  latencyMs: (_now, r) => 50 * Math.exp(1 * gauss(r)),
  jitter: 0,
  want: stationary,
});
add('latency', 'jumps 10 → 60 ms, 1000/s', {
  server: () => s.tokenBucket(1000, 0.05),
  latencyMs: (now) => (now < 60_000 ? 10 : 60),
  from: 62,
  want: stationary,
});

// ---- G: processes ----
add('processes', '1 process, 300/s', { server: () => s.tokenBucket(300, 0.05), processes: 1, want: stationary });
add('processes', '16 processes, 300/s', { server: () => s.tokenBucket(300, 0.05), processes: 16, want: stationary });
add('processes', '16 processes, 20/s', {
  server: () => s.tokenBucket(20, 1),
  processes: 16,
  seconds: 240,
  from: 60,
  want: stationary,
});
add('processes', '1 → 4 → 16 → 4, joining and leaving, 1000/s', {
  server: () => s.tokenBucket(1000, 0.05),
  stay: Array.from(
    { length: 16 },
    (_, i) => (i === 0 ? [0, 1e9] : i < 4 ? [30 + i, 1e9] : [60 + i, 90 + i]) as [number, number],
  ),
  seconds: 150,
  from: 30,
  want: stationary,
});
add('processes', '4, one pauses 1, 3, 10 s, 1000/s', {
  server: () => s.tokenBucket(1000, 0.05),
  pauses: [
    { process: 1, atS: 60, ms: 1000 },
    { process: 1, atS: 75, ms: 3000 },
    { process: 1, atS: 90, ms: 10_000 },
  ],
  seconds: 130,
  want: stationary,
});
add('processes', '1, pauses 1, 3, 10 s, 1000/s', {
  server: () => s.tokenBucket(1000, 0.05),
  processes: 1,
  pauses: [
    { process: 0, atS: 60, ms: 1000 },
    { process: 0, atS: 75, ms: 3000 },
    { process: 0, atS: 90, ms: 10_000 },
  ],
  seconds: 150,
  possible: (now) =>
    (now > 60_000 && now < 61_000) || (now > 75_000 && now < 78_000) || (now > 90_000 && now < 100_000) ? 0 : 1000,
  want: stationary,
});
// ---- H: the client's own delays ----
const cpu = { sendMs: 0.03, answerMs: 0.03 };
add('client', 'no limit, 20 ms, 1 process', {
  server: () => s.unlimited(),
  processes: 1,
  latencyMs: 20,
  cpu,
  seconds: 60,
  from: 15,
  possible: () => 64 / 0.02,
  want: { used: 0.9 },
});

// What 64 connections get without any limiter was measured with fixed.ts.
const busy = { sendMs: 0.05, answerMs: 0.1 };
for (const seed of [1, 2, 3]) {
  const client = (name: string, latencyMs: number, runMs: number, awayMs: number, own: boolean, best: number) =>
    add('client', `${name}, seed ${seed}`, {
      server: () => s.unlimited(),
      processes: 1,
      latencyMs,
      jitter: 0.2,
      cpu: { ...busy, away: { runMs, awayMs, own } },
      seconds: 60,
      from: 20,
      seed,
      possible: () => best,
      want: { used: 0.8 },
    });
  client('no limit, 5 ms, 40 % stolen', 5, 15, 10, false, 3949);
  client('no limit, 5 ms, half stolen in 100 ms pieces', 5, 100, 100, false, 3026);
  client('no limit, 20 ms, 70 % stolen in 70 ms pieces', 20, 30, 70, false, 1068);
  client('no limit, 5 ms, busy loop 50 % in 20 ms pieces', 5, 20, 20, true, 3453);
}
add('client', '3000/s, 20 ms, 40 % of the CPU stolen', {
  server: () => s.tokenBucket(3000, 0.05),
  processes: 4,
  latencyMs: 20,
  cpu: { ...cpu, away: { runMs: 15, awayMs: 10, own: false } },
  want: { used: 0.95 },
});

// ---- penalties and layers ----
for (const [name, kind, used] of [
  ['10 s', {}, 0.8],
  ['10 s, Retry-After', { tells: true }, 0.85],
  ['10 s since the last request', { extend: true }, 0.25],
] as const)
  add('penalty', `300 per 1 s, else nothing for ${name}`, {
    server: () => s.penalty(s.fixedWindow(300, 1000), 10_000, kind),
    seconds: 1800,
    from: 300,
    want: { used, refused: 0.005 },
  });
add('penalty', '30/s, else nothing for 60 s since the last request', {
  server: () => s.penalty(s.tokenBucket(30, 1), 60_000, { extend: true }),
  seconds: 1800,
  from: 900,
  want: { used: 0.01, note: 'it must not stay closed for ever' },
});
add('layers', '300/s and 6000 per 60 s', {
  server: () => s.both(s.tokenBucket(300, 0.1), s.fixedWindow(100, 60_000)),
  seconds: 640,
  from: 157,
  want: stationary,
});
add('layers', '100 per 1 s and 36000 in any 10 min', {
  server: () => s.both(s.fixedWindow(100, 1000), s.slidingLog(60, 600_000)),
  seconds: 2400,
  from: 600,
  want: { used: 0.95, refused: 0.01 },
});

// ---- runs with a rate of their own ----
for (const [pace, refusedAtS, used] of [
  [500, [25, 27], 0.86],
  [300, [25, 27, 29, 31], 0.76],
  [100, [25, 26.5, 28], 0.8],
] as const)
  add('paced', `a run at ${pace}/s of 1000/s, ${refusedAtS.length} times 429 with Retry-After 1`, {
    server: () => s.retryAfter(s.refusingAt(s.tokenBucket(1000, 0.05), refusedAtS), 'seconds'),
    processes: 1,
    paced: (now) => (now < 20_000 ? Number.POSITIVE_INFINITY : pace),
    possible: () => pace,
    seconds: 45,
    from: 25,
    want: { used },
  });
for (const [limit, pace] of [
  [300, 250],
  [100, 60],
] as const)
  add('paced', `a run at ${pace}/s of ${limit}/s, Retry-After 1`, {
    server: () => s.retryAfter(s.tokenBucket(limit, 0.05), 'seconds'),
    paced: () => pace,
    possible: () => pace,
    want: { used: 0.95, refused: 0.005 },
  });
add('paced', 'a run at 500/s on first contact, twice 429 with Retry-After 1', {
  server: () => s.retryAfter(s.refusingAt(s.unlimited(), [2, 4]), 'seconds'),
  processes: 1,
  paced: () => 500,
  possible: () => 500,
  seconds: 12,
  from: 0,
  want: { used: 0.72 },
});

// ---- first contact ----
for (const kind of ['draft-8', 'x-delta', null] as const)
  for (const stalled of [0, 40])
    add(
      'first contact',
      `300 per 1 s, ${kind ?? 'Retry-After only'}, 1 process${stalled > 0 ? `, stalls of ${stalled} ms` : ''}`,
      {
        server: () => {
          const server = s.retryAfterReset(s.fixedWindow(300, 1000, false));
          return kind === null ? server : s.telling(server, kind);
        },
        processes: 1,
        latencyMs: stalled > 0 ? stalls(stalled) : 5,
        seconds: 50,
        from: 15,
        want: { used: stalled > 0 ? 0.9 : 0.95, refused: 0.01 },
      },
    );
for (const processes of [1, 4])
  for (const limit of [300, 20])
    add('first contact', `${limit}/s without a burst, ${processes} process${processes === 1 ? '' : 'es'}`, {
      server: () => s.tokenBucket(limit, 0),
      processes,
      latencyMs: 3,
      seconds: 50,
      from: 15,
      want: { used: 0.75, refused: 0.01 },
    });

// ---- I: outages ----
for (const [name, how] of [
  ['nothing but 429 for 100 s at the start of a run, then as before', [429]],
  ['nothing but 429 for 100 s at the start of a run, then an outage of 30 s, then as before', [429, 503]],
] as const)
  add('outage', `100/s, ${name}`, {
    server: () => {
      const throttled = s.downBetween(s.tokenBucket(100, 0.05), 120, 220, 429);
      return how.length === 1 ? throttled : s.downBetween(throttled, 220, 250, 503);
    },
    processes: 1,
    hasWork: (now) => now < 40_000 || now > 120_000,
    changes: [[how.length === 1 ? 220 : 250, 100]],
    seconds: 320,
    from: 290,
    want: { follow: 20 },
  });
for (const kept of [1, 3])
  add('outage', `100/s, nothing but 429 for 60 s after ${kept} s of a run, then as before`, {
    server: () => s.downBetween(s.tokenBucket(100, 0.05), 120 + kept, 180 + kept, 429),
    processes: 1,
    hasWork: (now) => now < 40_000 || now > 120_000,
    changes: [[180 + kept, 100]],
    seconds: 260,
    from: 230,
    want: { follow: 20 },
  });
for (const how of [503, 'refused', 'reset', 429] as const)
  add('outage', `1000/s, down 30 s (${how})`, {
    server: () => s.downBetween(s.tokenBucket(1000, 0.05), 60, 90, how),
    seconds: 140,
    from: 60,
    possible: (now) => (now < 60_000 || now > 95_000 ? 1000 : 0),
    want: { used: 0.9, note: 'of what there was from 5 s after its end' },
  });
for (const [downMs, everyMs] of [
  [500, 3_000],
  [1_000, 6_000],
  [2_000, 20_000],
] as const)
  add('outage', `1000/s, down ${downMs} ms of every ${everyMs} ms (503)`, {
    server: () => s.flapping(s.tokenBucket(1000, 0.05), downMs, everyMs),
    seconds: 240,
    from: 60,
    possible: () => 1000 * (1 - downMs / everyMs),
    want: { used: 0.6, note: 'each costs a wait for a probe' },
  });
add('outage', '1000/s, 30 % of errors for 2 s of every 10 s (503)', {
  server: (random) => s.flapping(s.tokenBucket(1000, 0.05), 2_000, 10_000, 0.3, random),
  seconds: 240,
  from: 60,
  want: { used: 0.7 },
});
add('outage', '1 of 4 processes cannot connect for 30 s', {
  server: () => s.tokenBucket(1000, 0.05),
  brokenProcess: { process: 2, fromS: 60, toS: 90 },
  seconds: 140,
  from: 60,
  want: { used: 0.9 },
});

// ---- J: work that comes and goes ----
add('work', 'every other second, 300/s', {
  server: () => s.tokenBucket(300, 0.05),
  hasWork: (now) => now % 2000 < 1000,
  possible: (now) => (now % 2000 < 1000 ? 300 : 0),
  want: { used: 0.9, refused: 0.005 },
});
add('work', 'away for 70 s, 300/s', {
  server: () => s.tokenBucket(300, 0.05),
  hasWork: (now) => now < 40_000 || now > 110_000,
  seconds: 160,
  from: 112,
  want: stationary,
});

/** There and back in 10 ms; but what leaves in a stall, one in half a second, comes at its end. */
function stalls(ms: number): (now: number) => number {
  return (now) => 10 + 2 * Math.max(0, ms - ((now * 1.003) % 500));
}

/** There and back in 10 ms; but somewhen in each period nothing gets through for a while, and then all of it at once. */
function standsStill(ms: number, everyMs: number): (now: number) => number {
  return (now) => {
    const chance = seeded(Math.floor(now / everyMs))();
    const sinceMs = (now % everyMs) - chance * (everyMs - 1_000);
    return 10 + (sinceMs < 0 ? 0 : 2 * Math.max(0, ms - sinceMs));
  };
}

function gauss(r: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - r())) * Math.cos(2 * Math.PI * r());
}

/** Rows that miss what is wanted: what they are held to instead, so that they do not get worse, and why. */
const unmet: Record<string, Wants & { note: string }> = {
  'bucket 300/s, burst 1 request': {
    used: 0.5,
    refused: 0.006,
    note: 'no burst: latencies differ by more than the distance of two requests',
  },
  'bucket 3000/s, burst 1 request': { used: 0.08, refused: 0.005, note: 'the same' },
  'limits 100/s, burst 1 request': { used: 0.87, refused: 0.005, note: 'the same' },
  'vanish a limit of 0.2/s': { follow: 400, note: 'it looks for more after 300 answers of a limit that it is sure of' },
  'vanish 200 requests, then none for 12 s (none)': {
    follow: 400,
    note: 'the length of the cycles is known, and the climb takes some of them',
  },
  'window 3000 per 10 s': { used: 0.95, refused: 0.0135, note: 'the end of a window is met by tens of requests' },
  'window 3600 per 1 h': {
    used: 0.95,
    refused: 0.04,
    note: 'the second window is spent too fast before its length is known',
  },
  'concurrency 429 above 20 at once, 50 ms': {
    used: 0.82,
    refused: 0.02,
    note: 'a rate is learned, not a number at once',
  },
  'change told 1000/s × 0.005': {
    follow: 45,
    note: 'the same without headers: five in a window, and each refusal costs what is left of it',
  },
  'change 1000/s × 0.005': { follow: 40, note: 'a verdict on 5/s takes seconds, and by chance a second one is needed' },
  'change 1000/s × 0.001': {
    used: 0.5,
    refused: 0.05,
    note: 'half of what is left within seconds; the rest needs more answers than 1/s gives',
  },
  'tenants 1000/s, bursts of 500/s for 0.5 s of 2': {
    used: 0.78,
    refused: 0.03,
    note: 'the rate of the worst half second',
  },
  'Retry-After 20/s, burst 5 %, 1 seconds': {
    used: 0.88,
    refused: 0.005,
    note: 'a burst of one request, and each refusal costs a second',
  },
  'Retry-After 20/s, burst 5 %, 1 date': { used: 0.88, refused: 0.005, note: 'the same' },
  'headers 300 per 1 s, draft-8 + Retry-After': {
    used: 0.92,
    refused: 0.005,
    note: '96 % here and 94 % with the scripts on a real Redis, where a wait is often followed by another one',
  },
  'headers 3000 per 10 s, x-epoch-s + Retry-After': {
    used: 0.93,
    refused: 0.005,
    note: 'a reset that is rounded to seconds, of a window of ten',
  },
  '503 503 instead of 429, 1000/s × 0.03': {
    used: 0.9,
    refused: 0.15,
    note: 'by chance it is an outage again and again before the errors are known to be throttling',
  },
  'random 0.1 % random 429, limit 1000/s': { used: 0.85, refused: 0.0075, note: 'by chance a trial comes late' },
  'random 1 % random 429, limit 20/s': { used: 0.9, refused: 0.035, note: 'by chance' },
  'limits 5/s, burst 1 request': {
    used: 0.85,
    refused: 0.005,
    note: 'two refusals in a row are a twentieth of what a trial needs',
  },
  'latency 1000 ms ± 30 %, 300/s': {
    used: 0.9,
    refused: 0.02,
    note: 'a refusal is seen a second after hundreds of others have left',
  },
  'latency 2000 ms ± 30 %, 300/s': { used: 0.85, refused: 0.035, note: 'the same' },
  'random 0.1 % random 429, limit 20/s': { used: 0.9, refused: 0.0086, note: 'by chance' },
  'random 5 % random 429, 3200/s by connections': {
    used: 0.35,
    refused: 0.055,
    note: '99 % in six of eight; otherwise the first refusals are taken for a limit, and the rate stays low',
  },
  ...Object.fromEntries(
    [
      [0.0001, 0.67],
      [0.001, 0.14],
      [0.01, 0.09],
    ].map(([share, used]) => [
      `random ${share! * 100} % random 429 with Retry-After 1, limit 1000/s, 1 process`,
      { used: used!, note: 'each wait lowers the rate until a trial has shown that the rate is not the reason' },
    ]),
  ),
  'Retry-After 300/s, burst 5 %, 30 s': {
    used: 0.905,
    refused: 0.005,
    note: 'each refusal costs 30 s, and two are needed to find the limit',
  },
  'Retry-After 3000/s, burst 0.1 s, the way stands still for 150 ms of each 10000 ms': {
    used: 0.83,
    refused: 0.02,
    note: 'each costs all of them a second, and a guess about the burst',
  },
  'headers sliding counter 100 per 60 s, Retry-After to the end of its window': {
    used: 0.47,
    refused: 0.016,
    note: 'each refusal costs the rest of a window',
  },
  'first contact 300 per 1 s, Retry-After only, 1 process, stalls of 40 ms': {
    used: 0.87,
    refused: 0.01,
    note: 'what arrives at once after a stall is refused and lowers the estimate once more',
  },
  ...Object.fromEntries(
    scenarios
      .filter(({ group, want }) => group === 'client' && want?.used === 0.8)
      .map(({ group, name }) => [
        `${group} ${name}`,
        { used: 0.72, note: 'about 80 %, by chance of when the processor is taken' },
      ]),
  ),
};

/** What a row is held to. */
export function heldTo({ group, name, want = {} }: Scenario): Wants {
  return unmet[`${group} ${name}`] ?? want;
}
