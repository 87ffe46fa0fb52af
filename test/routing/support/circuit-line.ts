import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { exchange, gatewayFor } from '../../support/exchange.ts'
import type { TestGateway } from '../../support/gateway.ts'
import {
  answerJson,
  type ScriptedUpstream,
  startUpstream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'

export const RESET_MS = 250

/** A failure that counts against the line. */
export const fails: UpstreamScript = (res) => answerJson(res, 500, {})

/** One line with a circuit, and a gateway that has no other. */
export interface CircuitLine {
  readonly upstream: ScriptedUpstream
  readonly gateway: TestGateway
}

/** A line that answers; its circuit opens at half of the calls. */
export async function closedCircuit(t: TestContext, circuit: Record<string, number>): Promise<CircuitLine> {
  const upstream = await startUpstream()
  t.after(() => upstream.close())
  const gateway = await gatewayFor(t, {
    lines: [{ url: upstream.url, circuit: { errorPercent: 50, resetMs: RESET_MS, ...circuit } }],
  })
  return { upstream, gateway }
}

/** A line that fails; its first call has opened its circuit. */
export async function openCircuit(t: TestContext): Promise<CircuitLine> {
  const line = await closedCircuit(t, { minimumCalls: 1 })
  line.upstream.script = fails
  await exchange(line.gateway)
  assert.equal(stateOf(line.gateway), 'open')
  return line
}

/** The state of the circuit. */
export function stateOf(gateway: TestGateway): string {
  const [line] = gateway.config.catalog.lines
  assert.ok(line)
  return gateway.lines.status(line).circuit
}
