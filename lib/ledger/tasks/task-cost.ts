import { amountOf, type ChargeItem } from '../../core/call/index.ts'
import type { Price } from '../../core/catalog/index.ts'
import type { TaskCharge, VideoFacts, VideoTask } from './task.ts'

/** The factor by which the tokens of a video may exceed the estimate. */
const MARGIN = 1.25
const FRAMES_PER_SECOND = 24
const PIXELS_PER_TOKEN = 1024
/** About width times height, whatever the ratio. */
const PIXELS: ReadonlyMap<string | null, number> = new Map([
  ['480p', 864 * 480],
  ['720p', 1280 * 720],
  ['1080p', 1920 * 1080],
])
const MAX_PIXELS = 1920 * 1080

/**
 * Returns the highest cost of a video at any of the prices, in nano-units. It is held for the video.
 *
 * @param prices the prices on all lines that may be tried.
 * @example
 * const hold = mostItCosts(facts, lines.map((line) => priceOn(model, line)))
 */
export function mostItCosts(facts: VideoFacts, prices: readonly Price[]): bigint {
  const tokens = Math.ceil(estimatedTokens(facts) * MARGIN)
  let most = 0n
  for (const price of prices) {
    for (const made of [bySeconds(facts.seconds, price), byTokens(tokens, price)]) {
      const amount = amountOf(withRequest(made, price))
      if (amount > most) most = amount
    }
  }
  return most
}

/**
 * Returns the cost of a task that succeeded: the price per request, and its tokens if the line reported them and they
 * have a price, else its seconds. A quantity that the line did not report is the requested one, and the charge is
 * marked `estimated`.
 */
export function costOfTask(task: Pick<VideoTask, 'facts' | 'price' | 'lineCost' | 'usage'>): TaskCharge {
  const { price, lineCost } = task
  const charge = chargeAt(price, task)
  return lineCost ? { ...charge, cost: chargeAt(lineCost, task).amount } : charge
}

/**
 * Returns the charge of a task that succeeded: its cost, up to twice what was held. So no report of a line takes an account further
 * below zero than what was held. An item shows what is not charged.
 */
export function chargeOfTask(task: Parameters<typeof costOfTask>[0] & Pick<VideoTask, 'hold'>): TaskCharge {
  const charge = costOfTask(task)
  const most = 2n * task.hold
  if (charge.amount <= most) return charge
  const waived = { unit: 'bounded', quantity: 1, price: most - charge.amount } as const
  return { ...charge, amount: most, items: [...charge.items, waived], source: 'bounded' }
}

function chargeAt(price: Price, { facts, usage }: Pick<VideoTask, 'facts' | 'usage'>): TaskCharge {
  const inTokens = price.outputPerMillion > 0n && (usage.tokens !== null || price.perSecond === 0n)
  const used = inTokens
    ? byTokens(usage.tokens ?? estimatedTokens(facts), price)
    : bySeconds(usage.seconds ?? facts.seconds, price)
  const reported = inTokens ? usage.tokens : usage.seconds
  const items = withRequest(used, price)
  return { amount: amountOf(items), items, source: reported === null ? 'estimated' : 'measured' }
}

/** Returns the items of the cost of a request with that output. Items that are nothing, or cost nothing, are left out. */
function withRequest(made: ChargeItem, price: Price): ChargeItem[] {
  const items: ChargeItem[] = [{ unit: 'request', quantity: 1, price: price.perRequest }, made]
  return items.filter((item) => item.quantity > 0 && item.price > 0n)
}

function bySeconds(quantity: number, { perSecond: price }: Price): ChargeItem {
  return { unit: 'second', quantity, price }
}

function byTokens(quantity: number, { outputPerMillion: price }: Price): ChargeItem {
  return { unit: 'output', quantity, price }
}

/** Estimates tokens. Lines that count tokens count the pixels of all frames. */
function estimatedTokens({ seconds, size, resolution, framesPerSecond }: VideoFacts): number {
  const pixels = pixelsOf(size) ?? PIXELS.get(resolution) ?? MAX_PIXELS
  return Math.ceil((pixels * (framesPerSecond ?? FRAMES_PER_SECOND) * seconds) / PIXELS_PER_TOKEN)
}

function pixelsOf(size: string | null): number | undefined {
  const [, width, height] = /^(\d{1,5})x(\d{1,5})$/.exec(size ?? '') ?? []
  return width === undefined ? undefined : Number(width) * Number(height)
}
