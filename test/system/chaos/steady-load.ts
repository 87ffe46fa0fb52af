import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { type PaidCall, pay } from './paid-gateways.ts'

/** The answers to the steady calls of a tenant. */
export interface Steady {
  /** Milliseconds. */
  readonly p95: number
  readonly slowest: number
  /** Anything but a success, with how often it came. */
  readonly faults: Readonly<Record<string, number>>
  readonly calls: number
}

/** Makes a call every few milliseconds, whether the earlier ones are answered or not, until `during` has settled. */
export async function steadyLoad(
  gateway: GatewayProcess,
  call: Omit<PaidCall, 'text'>,
  during: Promise<unknown>,
  everyMs = 25,
): Promise<Steady> {
  const took: number[] = []
  const faults: Record<string, number> = {}
  const running = new Set<Promise<void>>()
  let over = false
  const end = () => {
    over = true
  }
  during.then(end, end)
  while (!over) {
    const startedAt = performance.now()
    const one = pay(gateway, { text: 'steady', ...call }).then((answer) => {
      took.push(performance.now() - startedAt)
      const code = answer && !answer.broken ? (/"code":"(\w+)"/.exec(answer.text)?.[1] ?? '') : 'broken'
      const fault = answer?.status === 200 ? code : `${answer?.status} ${code}`
      if (fault !== '') faults[fault] = (faults[fault] ?? 0) + 1
    })
    running.add(one)
    void one.finally(() => running.delete(one))
    await sleep(everyMs)
  }
  await Promise.all(running)
  took.sort((one, other) => one - other)
  const at = (share: number) => took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? 0
  return { p95: at(0.95), slowest: at(1), faults, calls: took.length }
}

/** The share of the calls that a busy machine may make so late that they are refused. */
const LATE_SHARE = 0.05

/**
 * Fails where a tenant was served worse than before: nearly all of its calls are answered as soon, and none is refused for
 * anything but the time that it waited.
 *
 * @param heldUpMs what the machine adds to a measured time.
 */
export function assertUndisturbed(beside: Steady, alone: Steady, heldUpMs: number): void {
  const { '503 billing_unavailable': late = 0, ...faults } = beside.faults
  assert.deepEqual(faults, {})
  assert.ok(late <= LATE_SHARE * beside.calls, `${late} of ${beside.calls} refused`)
  assert.ok(beside.p95 <= alone.p95 + 300 + 2 * heldUpMs, `${beside.p95} ms, alone ${alone.p95} ms`)
}
