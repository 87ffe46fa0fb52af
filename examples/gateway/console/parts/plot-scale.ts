/** The vertical axis of a plot. */
export interface Scale {
  /** The upper end. */
  readonly most: number
  /** The values of lines and labels, including 0. */
  readonly ticks: readonly number[]
}

const STEPS = [1, 2, 2.5, 5, 10]
const TICKS = 4

/** Returns an axis with round ticks whose end is not below a value. */
export function scaleOf(greatest: number): Scale {
  if (!(greatest > 0)) return { most: 1, ticks: [0] }
  const rough = greatest / TICKS
  const magnitude = 10 ** Math.floor(Math.log10(rough))
  const factor = STEPS.find((step) => step * magnitude >= rough * (1 - Number.EPSILON * 8)) ?? 10
  const step = factor * magnitude
  const intervals = Math.max(1, Math.ceil(greatest / step - 1e-9))
  // Multiplied and rounded, because 0.1 + 0.2 and 3 × 0.1 are not exact.
  const ticks = Array.from({ length: intervals + 1 }, (_, i) => Number((i * step).toPrecision(12)))
  return { most: Number((intervals * step).toPrecision(12)), ticks }
}
