import { load, type Reply, startLimited } from '../middleware/rate-limit/load.ts'

/** Callers of one key, none of which knows of the others. */
export interface OutOfStep {
  /** The port of a Redis that two processes share, or the memory of one. */
  readonly store: number | 'memory'
  readonly kind: 'rpm' | 'tpm'
  readonly most: number
  readonly windowMs: number
  /** Whole windows to measure. */
  readonly windows: number
  readonly callers: number
  /** Each call runs for some time between these, in milliseconds. */
  readonly runsMs: readonly [shortest: number, longest: number]
  /** Each call costs some number of tokens between these, where tokens are what is limited. */
  readonly tokens: readonly [least: number, most: number]
}

/** The result of a measurement. */
export interface WindowShare {
  readonly windows: number
  /** Admitted ÷ what the limit allows in the time from the first window's begin to the last one's. */
  readonly ofTime: number
  /** Admitted ÷ what the limit allows in as many windows as there were. */
  readonly ofWindows: number
  /** The same of the fullest window: over 1, and the limit was not kept. */
  readonly fullest: number
  /** Most seconds between the end of a window and the beginning of the next. */
  readonly longestGap: number
}

/**
 * Callers that begin at different times and whose calls run for different times; each sends one request after the other
 * and honours the Retry-After of its own answers.
 */
export async function outOfStep(setting: OutOfStep): Promise<WindowShare> {
  const { store, kind, most, windowMs, windows, callers } = setting
  const limited = { [kind]: most, windowMs, subject: `out-of-step-${kind}` }
  const processes = await Promise.all(
    Array.from({ length: store === 'memory' ? 1 : 2 }, () => startLimited(store, limited)),
  )
  const admitted: Reply[] = []
  let begun = 0
  await load({
    urls: processes.map(({ url }) => url),
    callers,
    spreadMs: setting.runsMs[1],
    headers: () => ({
      'x-hold': `${between(setting.runsMs)}`,
      ...(kind === 'tpm' && { 'x-tokens': `${between(setting.tokens)}` }),
    }),
    done: (reply) => {
      if (reply.status === 200) admitted.push(reply)
      if (beginsWindow(reply, setting)) begun++
      return begun > windows
    },
  })
  await Promise.all(processes.map((each) => each.kill()))
  return shareOfWindows(admitted, setting)
}

/** The first of a window finds nothing used; no other does. */
function beginsWindow(
  { status, tokens, remainingRequests, remainingTokens }: Reply,
  { kind, most }: OutOfStep,
) {
  return (
    status === 200 && (kind === 'rpm' ? remainingRequests === most - 1 : remainingTokens === most - tokens)
  )
}

/** Two processes may admit in one order and note it in another; but by its end, a window is long used up. */
const MIXED_UP_MS = 50

function shareOfWindows(admitted: readonly Reply[], setting: OutOfStep): WindowShare {
  const at = (reply: Reply) => reply.admittedAt as number
  const begins = admitted
    .filter((reply) => beginsWindow(reply, setting))
    .map(at)
    .sort((one, other) => one - other)
    .slice(0, setting.windows + 1)
  const lengths = begins.slice(1).map((begin, i) => begin - (begins[i] as number))
  const used = lengths.map((length, i) => {
    const begin = (begins[i] as number) - MIXED_UP_MS
    return admitted
      .filter((reply) => at(reply) >= begin && at(reply) < begin + length)
      .reduce((sum, { tokens }) => sum + (setting.kind === 'rpm' ? 1 : tokens), 0)
  })
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  return {
    windows: lengths.length,
    ofTime: (sum(used) / setting.most) * (setting.windowMs / sum(lengths)),
    ofWindows: sum(used) / (setting.most * lengths.length),
    fullest: Math.max(...used) / setting.most,
    longestGap: (Math.max(...lengths) - setting.windowMs) / 1000,
  }
}

function between([least, most]: readonly [number, number]): number {
  return least + Math.floor(Math.random() * (most - least + 1))
}
