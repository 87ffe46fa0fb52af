import { fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Agent, request } from 'undici'

/** Limits of a {@link startLimited} process. */
export interface LimitSettings {
  rpm?: number
  tpm?: number
  concurrency?: number
  windowMs?: number
  /** The subject of the limits. Defaults to `shared`. */
  subject?: string
}

/** A running limited-process.ts. */
export interface LimitedProcess {
  readonly url: string
  /** SIGKILL. */
  kill(): Promise<void>
}

/** Starts a process whose limits are kept in the Redis of that port, or in its own memory. */
export function startLimited(store: number | 'memory', settings: LimitSettings): Promise<LimitedProcess> {
  const script = fileURLToPath(new URL('./limited-process.ts', import.meta.url))
  const child = fork(script, [`${store}`, JSON.stringify(settings)])
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`limited process ended with code ${code}`)))
    child.once('message', (port) =>
      resolve({
        url: `http://127.0.0.1:${port}/v1/chat/completions`,
        kill: () => {
          child.kill('SIGKILL')
          return gone
        },
      }),
    )
  })
}

/** One answer, as a caller saw it. */
export interface Reply {
  readonly status: number
  /** Milliseconds from sending to the end of the answer. */
  readonly took: number
  /** When it ended, as performance.now() counts. */
  readonly at: number
  readonly remainingRequests: number
  readonly remainingTokens: number
  readonly running: number | undefined
  /** By the clock of the machine, in milliseconds; undefined: it was refused. */
  readonly admittedAt: number | undefined
  /** The tokens that an admitted request cost. */
  readonly tokens: number
}

export interface Load {
  readonly urls: readonly string[]
  /** Callers, each of which sends one request after the other and honours Retry-After. */
  readonly callers: number
  readonly headers?: Record<string, string> | (() => Record<string, string>)
  /** Milliseconds between an answer and the caller's next request. Defaults to 0. */
  readonly pauseMs?: number
  /** Milliseconds over which the callers begin. Defaults to 0: all at once. */
  readonly spreadMs?: number
  /** Whether to end, after each answer. */
  readonly done: (reply: Reply, replies: readonly Reply[]) => boolean
}

/** Makes callers send until `done`; all their answers. */
export async function load({
  urls,
  callers,
  headers = {},
  pauseMs = 0,
  spreadMs = 0,
  done,
}: Load): Promise<Reply[]> {
  const agent = new Agent({ connections: null })
  const replies: Reply[] = []
  const over = new AbortController()
  const call = async (caller: number) => {
    // Callers who begin at the same instant would be refused, and come back, all at the same instant too.
    await sleep((caller * spreadMs) / callers)
    for (let i = caller; !over.signal.aborted; i++) {
      const started = performance.now()
      const answer = await request(urls[i % urls.length]!, {
        method: 'POST',
        headers: typeof headers === 'function' ? headers() : headers,
        dispatcher: agent,
      })
      const body = (await answer.body.json()) as Partial<Pick<Reply, 'running' | 'admittedAt' | 'tokens'>>
      const reply: Reply = {
        status: answer.statusCode,
        took: performance.now() - started,
        at: performance.now(),
        remainingRequests: Number(answer.headers['x-ratelimit-remaining-requests']),
        remainingTokens: Number(answer.headers['x-ratelimit-remaining-tokens']),
        running: body.running,
        admittedAt: body.admittedAt,
        tokens: body.tokens ?? 0,
      }
      replies.push(reply)
      if (done(reply, replies)) over.abort()
      const waitMs = reply.status === 429 ? Number(answer.headers['retry-after']) * 1000 : pauseMs
      await sleep(waitMs, undefined, { signal: over.signal }).catch(() => {})
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
  await agent.close()
  return replies
}

/** The share of a limit that was admitted in whole windows. */
export interface Share {
  readonly windows: number
  /** Admitted over configured, of all windows. */
  readonly ratio: number
  /** Admitted over configured, of the fullest window. */
  readonly fullest: number
}

/**
 * Reads the share of a limit off the remainders that callers got: within a window no remainder comes twice, and
 * the largest one begins it. All requests cost the same.
 */
export function shareOf(remainders: readonly number[], limit: number, cost: number): Share {
  const told = new Map<number, number>()
  for (const remainder of remainders) told.set(remainder, (told.get(remainder) ?? 0) + 1)
  const windows = told.get(limit - cost) ?? 0
  return {
    windows,
    ratio: (remainders.length * cost) / (limit * windows),
    fullest: (Math.max(...told.values()) / windows) * ((told.size * cost) / limit),
  }
}
