import assert from 'node:assert/strict'
import { scanTokens } from '../../../../lib/core/operations/metering/token-estimate.ts'

const units = new Uint16Array(4096)

/** Returns the cost of a text before it is rounded. */
export function costOf(text: string): number {
  for (let i = 0; i < text.length; i++) units[i] = text.charCodeAt(i)
  return scanTokens(units, text.length)
}

/** Fails where a text costs something else. */
export function assertCosts(rows: readonly (readonly [text: string, cost: number])[]): void {
  for (const [text, cost] of rows) {
    const off = Math.abs(costOf(text) - cost)
    assert.ok(off < 1e-9, `${JSON.stringify(text)} costs ${costOf(text)}, not ${cost}`)
  }
}
