import type { OpenCall } from '../call/index.ts'
import { GatewayError } from '../errors/index.ts'
import { BodyCollector } from './body-collector.ts'
import { withinMemory } from './process-memory.ts'

/** A body may come in this many pieces of any size. It may come in more if they have this many bytes on average. */
const FREE_PIECES = 4096
const MIN_PIECE_BYTES = 32

/** Counts the pieces of a body: each takes a microsecond or more of everybody's time. */
export class PieceCount {
  #pieces = 0
  #bytes = 0

  /** Counts a piece. Returns the refusal of a body that comes in too many. */
  add(bytes: number): GatewayError | undefined {
    this.#bytes += bytes
    if (++this.#pieces <= FREE_PIECES || this.#bytes >= this.#pieces * MIN_PIECE_BYTES) return undefined
    return new GatewayError('invalid_request', {
      message: `The body comes in too many pieces. Send at least ${MIN_PIECE_BYTES} bytes in each chunk.`,
    })
  }
}

/** The bounds of the memory for bodies that have not come whole. */
export interface BudgetBounds {
  /** The most bytes for the bodies of one key. */
  readonly perKey: number
  /** The most bytes for all bodies of the process. */
  readonly perProcess: number
}

const DEFAULT_BUDGET = withinMemory(256 * 1024 * 1024)

/**
 * Returns the bounds for bodies of at most so many bytes.
 *
 * @param perProcess defaults to 256 MiB, less where the process may take less than 1 GiB, or to one body if that is more.
 * @throws TypeError if a number is unusable.
 */
export function budgetOf(
  of: string,
  bodyLimitBytes: number,
  perProcess = Math.max(DEFAULT_BUDGET, bodyLimitBytes),
): BudgetBounds {
  if (!(bodyLimitBytes > 0)) throw new TypeError(`${of}: "bodyLimitBytes" must be a positive number of bytes`)
  if (!(perProcess >= bodyLimitBytes))
    throw new TypeError(`${of}: "bodyBudgetBytes" must be at least "bodyLimitBytes"`)
  return { perKey: 2 * bodyLimitBytes, perProcess }
}

interface Share {
  readonly key: string | undefined
  readonly account: string | undefined
  bytes: number
  readonly bodies: Set<HeldBody>
}

const shares = new Map<string | undefined, Share>()
let processBytes = 0

/** Returns the memory that the unfinished bodies of this process take. */
export function heldBodyBytes(): number {
  return processBytes
}

/**
 * A body that is being received, and the memory that it takes. What counts are bytes that came, not those that a header
 * announces. When the process has no room left, the account that holds most gives way, so that slow senders cannot
 * take the memory from others. It gives way, too, when its key ends.
 */
export class HeldBody {
  readonly #share: Share
  readonly #bounds: BudgetBounds
  #refuse: (error: GatewayError) => void
  #collected = new BodyCollector(Number.POSITIVE_INFINITY)
  readonly #pieces = new PieceCount()
  #counted = 0

  /** @param refuse is called when the body must be given up; its memory is free by then. */
  constructor(call: OpenCall, bounds: BudgetBounds, refuse: (error: GatewayError) => void) {
    const { principal, keyWatch } = call
    const key = principal?.keyId
    const share = shares.get(key) ?? { key, account: principal?.accountId, bytes: 0, bodies: new Set() }
    shares.set(key, share)
    share.bodies.add(this)
    this.#share = share
    this.#bounds = bounds
    this.#refuse = refuse
    keyWatch?.follow(call, (error) => {
      if (share.bodies.has(this)) this.#drop(error)
    })
  }

  /** Adds a piece. The body may be refused because of it. */
  add(piece: Buffer): void {
    this.#collected.push(piece)
    const refusal = this.#pieces.add(piece.length)
    if (refusal) this.#drop(refusal)
    else this.count(this.#collected.size - this.#counted)
  }

  /** Counts memory that the body takes elsewhere, as while it is decompressed. */
  count(more: number): void {
    if (more <= 0 || !this.#share.bodies.has(this)) return
    this.#counted += more
    this.#share.bytes += more
    processBytes += more
    const { perKey, perProcess } = this.#bounds
    if (this.#share.key !== undefined && this.#share.bytes > perKey) this.#drop(keyHoldsTooMuch())
    while (processBytes > perProcess) this.#bodyToDrop().#drop(processHoldsTooMuch())
  }

  /** Calls another function from now on when the body must be given up. */
  whenRefused(refuse: (error: GatewayError) => void): void {
    this.#refuse = refuse
  }

  /** Returns what came. Its pieces are not kept beside it. */
  take(): Buffer {
    const bytes = this.#collected.take()
    this.#collected = new BodyCollector(Number.POSITIVE_INFINITY)
    return bytes
  }

  /** Gives the memory back to the budget. Further calls do nothing. */
  release(): void {
    const share = this.#share
    if (!share.bodies.delete(this)) return
    share.bytes -= this.#counted
    processBytes -= this.#counted
    if (share.bodies.size === 0) shares.delete(share.key)
  }

  #drop(error: GatewayError): void {
    this.release()
    this.#collected = new BodyCollector(Number.POSITIVE_INFINITY)
    this.#refuse(error)
  }

  /** Returns this body, or the largest of the account that holds most if that is another one. */
  #bodyToDrop(): HeldBody {
    const { account } = this.#share
    const heaviest = heaviestAccount()
    if (heaviest === account && this.#share.bodies.has(this)) return this
    let largest: HeldBody | undefined
    for (const share of shares.values()) {
      if (share.account !== heaviest) continue
      for (const body of share.bodies) if (!largest || body.#counted > largest.#counted) largest = body
    }
    return largest ?? this
  }
}

function heaviestAccount(): string | undefined {
  const bytes = new Map<string | undefined, number>()
  let heaviest: string | undefined
  let most = -1
  for (const share of shares.values()) {
    const sum = (bytes.get(share.account) ?? 0) + share.bytes
    bytes.set(share.account, sum)
    if (sum <= most) continue
    most = sum
    heaviest = share.account
  }
  return heaviest
}

const RETRY_AFTER_MS = 1000

function keyHoldsTooMuch(): GatewayError {
  return new GatewayError('concurrency_limited', {
    message: 'This API key is sending too many large bodies at a time. Let some of them arrive, then retry.',
    retryAfterMs: RETRY_AFTER_MS,
  })
}

function processHoldsTooMuch(): GatewayError {
  return new GatewayError('upstream_overloaded', {
    message: 'The gateway is receiving too many large bodies at the moment. Retry with backoff.',
    retryAfterMs: RETRY_AFTER_MS,
  })
}
