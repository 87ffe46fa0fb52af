/** The callers in a run of the accuracy bench, their limits, and the costs of the lines that serve them. */

import { formatAmount } from '../../../lib/core/catalog/index.ts'

/** Of a million tokens, in nano-units. */
export interface LinePrice {
  readonly input: bigint
  readonly cachedInput: bigint
  readonly cacheWrite: bigint
  readonly output: bigint
}

/** A line of the config; no two have the same price, so a charge at another line's price shows. */
export interface BenchLine {
  readonly id: string
  readonly protocol: 'openai' | 'anthropic'
  readonly price: LinePrice
}

/** Uneven, so that charges have to be rounded. */
const priceOf = (step: bigint): LinePrice => ({
  input: 3_000_417_517n + step * 110_070_013n,
  cachedInput: 300_233_433n + step * 70_030_019n,
  cacheWrite: 3_700_611_321n + step * 130_090_017n,
  output: 15_000_383_611n + step * 170_050_029n,
})

export const LINES: readonly BenchLine[] = ['north', 'south', 'west', 'oak', 'elm', 'ash'].map((id, i) => ({
  id,
  protocol: i < 3 ? 'openai' : 'anthropic',
  price: priceOf(BigInt(i)),
}))

export const MODEL = { openai: 'chat', anthropic: 'claude' } as const

/** Longest answer that callers ask for, and the most words that the upstream says. */
export const MAX_WORDS = 40

/** One limit, and the callers who all want more than it allows. */
export interface LimitedSubject {
  readonly name: string
  readonly kind: 'rpm' | 'tpm' | 'concurrency'
  readonly level: 'key' | 'account'
  readonly most: number
  readonly keys: readonly string[]
  readonly callers: number
  /** When its callers begin, as a share of the run. */
  readonly beginsAt: number
  /** Whether new callers, who have received no wait, keep coming while Redis is away. */
  readonly inOutage: boolean
}

/** When things are provoked, as shares of the run. */
export const SCHEDULE = { postgres: 0.1, redis: 0.25, gateway: 0.45 } as const

const subject = (
  kind: LimitedSubject['kind'],
  level: LimitedSubject['level'],
  most: number,
  beginsAt: number,
  inOutage = false,
): Omit<LimitedSubject, 'name' | 'keys'> => ({ kind, level, most, callers: 8, beginsAt, inOutage })

/** Some begin before, and some in the midst of, each thing that is provoked. */
const SUBJECTS = [
  subject('rpm', 'key', 60, 0),
  subject('rpm', 'key', 60, SCHEDULE.postgres - 0.02),
  subject('rpm', 'key', 60, SCHEDULE.gateway - 0.02),
  subject('rpm', 'account', 60, 0.02),
  subject('rpm', 'account', 60, SCHEDULE.gateway - 0.01),
  subject('tpm', 'key', 4000, 0),
  subject('tpm', 'account', 4000, SCHEDULE.postgres - 0.01),
  subject('tpm', 'key', 4000, SCHEDULE.gateway - 0.02),
  { ...subject('concurrency', 'account', 6, 0), callers: 18 },
]

/** Their callers begin in time to use a window up before Redis goes. */
const OUTAGE_SUBJECTS = [
  subject('rpm', 'key', 30, SCHEDULE.redis - 0.06, true),
  subject('rpm', 'account', 30, SCHEDULE.redis - 0.06, true),
  subject('tpm', 'key', 2000, SCHEDULE.redis - 0.06, true),
]

/** The limits of a run. */
export function limitedSubjects(faults: boolean): LimitedSubject[] {
  const chosen = faults ? [...SUBJECTS, ...OUTAGE_SUBJECTS] : SUBJECTS
  return chosen.map((each, i) => {
    const name = `${each.inOutage ? 'outage' : 'limited'}-${each.kind}-${each.level}-${i + 1}`
    const keys = each.level === 'key' ? [`sk-${name}`] : [`sk-${name}-a`, `sk-${name}-b`]
    return { ...each, name, keys }
  })
}

/** Keys of accounts that no limit holds back. */
export const PAID_KEYS = ['sk-paid-1-a', 'sk-paid-1-b', 'sk-paid-2-a', 'sk-paid-3-a']

/** Of an account whose callers want more than it can pay. */
export const POOR = { account: 'poor', key: 'sk-poor', balance: '0.25', callers: 6 } as const

/** The gateway's config file. */
export function benchConfig(origin: string, subjects: readonly LimitedSubject[]): object {
  const paidAccounts = [...new Set(PAID_KEYS.map(accountOfPaid))]
  return {
    accounts: [
      ...paidAccounts.map((id) => ({ id, balance: '1000' })),
      { id: POOR.account, balance: POOR.balance },
      ...subjects.map(({ name, kind, level, most }) => ({
        id: name,
        balance: '1000',
        limits: level === 'account' ? { [kind]: most } : {},
      })),
    ],
    keys: [
      ...PAID_KEYS.map((secret) => ({
        id: secret.slice(3),
        account: accountOfPaid(secret),
        secret,
        quota: '500',
      })),
      { id: 'poor', account: POOR.account, secret: POOR.key },
      ...subjects.flatMap(({ name, kind, level, most, keys }) =>
        keys.map((secret) => ({
          id: secret.slice(3),
          account: name,
          secret,
          limits: level === 'key' ? { [kind]: most } : {},
        })),
      ),
    ],
    models: Object.values(MODEL).map((id) => ({ id, kind: 'chat', contextWindow: 8000 })),
    lines: LINES.map(({ id, protocol, price }) => ({
      id,
      provider: id,
      protocol,
      baseUrl: `${origin}/${id}/v1`,
      models: { [MODEL[protocol]]: `model-of-${id}` },
      timeouts: { connectMs: 1000, firstByteMs: 1500, idleMs: 1000, totalMs: 10_000 },
      circuit: { resetMs: 1000 },
      price: {
        inputPerMillion: formatAmount(price.input),
        cachedInputPerMillion: formatAmount(price.cachedInput),
        cacheWritePerMillion: formatAmount(price.cacheWrite),
        outputPerMillion: formatAmount(price.output),
      },
    })),
    routing: { strategy: 'weighted' },
  }
}

/** `sk-paid-1-a` is a key of `paid-1`. */
export function accountOfPaid(secret: string): string {
  return secret.slice(3, -2)
}
