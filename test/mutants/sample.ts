/**
 * Returns `count` of the items, spread evenly over their order, so that each file has its share; all of them if there are
 * no more. The same seed draws the same.
 */
export function sample<Item>(items: readonly Item[], count: number, seed: number): Item[] {
  if (count >= items.length) return [...items]
  const random = randomOf(seed)
  const width = items.length / count
  return Array.from({ length: count }, (_, index) => items[Math.floor((index + random()) * width)] as Item)
}

/** Mulberry32: small, and good enough to draw with. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
