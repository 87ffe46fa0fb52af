import assert from 'node:assert/strict'
import { tokensIn } from '../../../../lib/core/operations/metering/token-estimate.ts'

/** Fails where a text costs something else. */
export function assertCosts(rows: readonly (readonly [text: string, cost: number])[]): void {
  for (const [text, cost] of rows) {
    const off = Math.abs(tokensIn(text) - cost)
    assert.ok(off < 1e-9, `${JSON.stringify(text)} costs ${tokensIn(text)}, not ${cost}`)
  }
}
