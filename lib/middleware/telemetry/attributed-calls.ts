import type { Meter } from '@opentelemetry/api'
import type { OpenCall } from '../../core/call/index.ts'
import type { Tags } from '../../core/catalog/index.ts'
import { ATTRIBUTE, OTHER } from './attributes.ts'
import type { Labelled } from './labelled.ts'
import { IN_USD, Tally } from './tally.ts'
import type { ChargedTask } from './video-charges.ts'

/** Which labels there are, and how many values each may have in this process. */
interface LabelBounds {
  readonly labels: readonly string[]
  readonly maxValues: number
}

/** The account, key, user and tags of a call or a video. */
interface Attribution {
  readonly account: string
  readonly key: string | null
  readonly user?: string | null | undefined
  readonly tags?: Tags | null | undefined
}

/** The most combinations of labels, for each value that a label may have. */
const SETS_PER_VALUE = 10

const countersByMeter = new WeakMap<Meter, Map<string, AttributedCalls>>()

/** Returns the counters of these labels on a meter. All chains of a process share them. */
export function attributedCallsOn(meter: Meter, options: LabelBounds): AttributedCalls {
  const known = countersByMeter.get(meter) ?? new Map<string, AttributedCalls>()
  countersByMeter.set(meter, known)
  const name = JSON.stringify(options)
  const counters = known.get(name) ?? new AttributedCalls(meter, options)
  known.set(name, counters)
  return counters
}

/** Counts calls, tokens and charges by what they are attributed to. Values beyond a number count as `other`. */
export class AttributedCalls {
  readonly #labels: readonly BoundedLabel[]
  readonly #sets: Bounded
  readonly #calls: Tally
  readonly #tokens: Tally
  readonly #charges: Tally

  constructor(meter: Meter, { labels, maxValues }: LabelBounds) {
    this.#labels = labels.map((label) => new BoundedLabel(label, maxValues))
    this.#sets = new Bounded(maxValues * SETS_PER_VALUE, true)
    const tally = (name: string, unit: string, description: string, scale?: number) =>
      new Tally(
        meter.createObservableCounter(`model_gateway.attributed.${name}`, { unit, description }),
        scale,
      )
    this.#calls = tally('calls', '{call}', 'Calls that have ended, by what they are attributed to')
    this.#tokens = tally('tokens', '{token}', 'Tokens that calls used, by what they are attributed to')
    this.#charges = tally('charges', 'USD', 'Charges, by what they are attributed to', IN_USD)
    const tallies = [this.#calls, this.#tokens, this.#charges]
    meter.addBatchObservableCallback(
      (result) => {
        for (const each of tallies) each.observe(result)
      },
      tallies.map(({ counter }) => counter),
    )
  }

  /** Counts an ended call that asked for a model. One without a valid key belongs to no account. */
  note({ principal, model, user, tags, usage, billing }: OpenCall): void {
    if (!principal || model === null) return
    const values = this.#valuesOf({ account: principal.accountId, key: principal.keyId, user, tags })
    this.#in(this.#calls, values).add(1)
    if (billing?.charged) this.#in(this.#charges, values).add(Number(billing.charged))
    if (!usage) return
    const tokens = this.#in(this.#tokens, values)
    tokens.with(ATTRIBUTE.tokenType, 'input').add(usage.inputTokens)
    tokens.with(ATTRIBUTE.tokenType, 'output').add(usage.outputTokens)
  }

  /** Counts a charge that is made after its call has ended, in nano-units. */
  charge({ account, key = null, user, tags }: ChargedTask, amount: bigint): void {
    if (account === undefined) return
    this.#in(this.#charges, this.#valuesOf({ account, key, user, tags })).add(Number(amount))
  }

  #valuesOf(attribution: Attribution): readonly (string | undefined)[] {
    const values = this.#labels.map((label) => label.valueOf(attribution))
    if (this.#sets.takes(JSON.stringify(values), attribution.account)) return values
    // The labels that callers send become `other`. Those of the account and the key stay, so that they are not hidden.
    return values.map((value, i) => (this.#labels[i]?.isSent ? OTHER : value))
  }

  #in({ counts }: Tally, values: readonly (string | undefined)[]): Labelled {
    return this.#labels.reduce((set, { attribute }, i) => set.with(attribute, values[i]), counts)
  }
}

/** One label with the values that it has so far. */
class BoundedLabel {
  readonly attribute: string
  /** Whether callers choose its values. */
  readonly isSent: boolean
  readonly #label: string
  readonly #values: Bounded

  constructor(label: string, maxValues: number) {
    this.attribute = `model_gateway.${label.replace(':', '.')}`
    this.isSent = label === 'user' || label.startsWith('tag:')
    this.#label = label
    this.#values = new Bounded(maxValues, this.isSent)
  }

  valueOf(attribution: Attribution): string | undefined {
    const value = this.#read(attribution)
    if (value === undefined || this.#values.takes(value, attribution.account)) return value
    return OTHER
  }

  #read({ account, key, user, tags }: Attribution): string | undefined {
    switch (this.#label) {
      case 'account':
        return account
      case 'key':
        return key ?? undefined
      case 'user':
        return user ?? undefined
      default: {
        const name = this.#label.slice('tag:'.length)
        return tags && Object.hasOwn(tags, name) ? tags[name] : undefined
      }
    }
  }
}

/** A bounded set of texts. An account brings at most half of what callers send: it must not use up the room of others. */
class Bounded {
  readonly #max: number
  readonly #maxOfAccount: number
  readonly #texts = new Set<string>()
  readonly #broughtBy = new Map<string, number>()

  constructor(max: number, isSent: boolean) {
    this.#max = max
    this.#maxOfAccount = isSent ? max / 2 : max
  }

  /** Returns whether a text is one of them, or is from now on. */
  takes(text: string, account: string): boolean {
    if (this.#texts.has(text)) return true
    const brought = this.#broughtBy.get(account) ?? 0
    if (this.#texts.size >= this.#max || brought >= this.#maxOfAccount) return false
    this.#texts.add(text)
    this.#broughtBy.set(account, brought + 1)
    return true
  }
}
