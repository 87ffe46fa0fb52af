import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible'
import type { Demand } from '../rate-limit/index.ts'

/** What {@link ADMIT} of limit-scripts.ts returns. */
export type AdmitReply = readonly number[]

/** A result of several counters. */
export class LevelsRes extends RateLimiterRes {
  readonly reply: AdmitReply

  constructor(reply: AdmitReply) {
    const [refusedBy = 0, waitMs = 0] = reply
    super(0, waitMs, refusedBy === 0 ? 0 : 1)
    this.reply = reply
  }
}

/**
 * rate-limiter-flexible's Redis limiter, which consumes from all counters of a demand or from none. Left to itself it
 * has one counter per consume, charged even when it refuses: what the other levels of a request took would have to be
 * given back a round trip later, and until then others would be refused for nothing. It also defines its script on
 * the client under one name for all limiters, so this one does not get to see the app's client.
 */
export class LevelsLimiter extends RateLimiterRedis {
  readonly #ask: (demand: Demand) => Promise<AdmitReply>

  constructor(keyPrefix: string, ask: (demand: Demand) => Promise<AdmitReply>) {
    super({ storeClient: {}, points: 0, duration: 0, keyPrefix })
    this.#ask = ask
  }

  /** @throws whatever the store failed with; a refusal is no exception. */
  async consumeAll(demand: Demand): Promise<AdmitReply> {
    const result: unknown = await this.consume(demand.sender, 1, { demand }).catch((refusal: unknown) => {
      if (refusal instanceof LevelsRes) return refusal
      throw refusal
    })
    return (result as LevelsRes).reply
  }

  /** How the base class writes to its store. */
  _upsert(
    _key: string,
    _points: number,
    _ms: number,
    _force: boolean,
    options: { demand: Demand },
  ): Promise<AdmitReply> {
    return this.#ask(options.demand)
  }

  /** How the base class reads the store's answer. */
  _getRateLimiterRes(_key: string, _points: number, reply: AdmitReply): LevelsRes {
    return new LevelsRes(reply)
  }
}
