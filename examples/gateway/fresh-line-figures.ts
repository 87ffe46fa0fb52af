import { setTimeout as sleep } from 'node:timers/promises'
import type { LineSwitches } from 'express-model-gateway'
import type { LineFigures } from 'express-model-gateway/route'

/** Less than a worker has for its report. */
const FRESH_WITHIN_MS = 500

/** Returns the figures of all lines, as operators have switched them by now, unless the store of the switches takes long. */
export async function freshLineFigures(
  switches: LineSwitches,
  figures: () => readonly LineFigures[],
): Promise<readonly LineFigures[]> {
  const late = sleep(FRESH_WITHIN_MS, undefined, { ref: false })
  await Promise.race([switches.refresh().catch(() => {}), late])
  return figures()
}
