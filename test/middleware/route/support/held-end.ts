import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { answer, bodyOf, type Mode, pathOf } from '../../../support/exchange.ts'
import type { TestGateway } from '../../../support/gateway.ts'
import type { ScriptedUpstream } from '../../../support/scripted-upstream.ts'
import { until } from '../../../support/until.ts'

/** The parts of a stream by which a caller recognizes its end. */
export const ENDS = /"finish_reason":"|"stop_reason":"end_turn"|\[DONE\]|message_stop/

/** Puts durable work into the way of the call that is open. */
export function settleWith(gateway: TestGateway, work: () => Promise<void>): void {
  const [call] = gateway.openCalls
  assert.ok(call)
  call.onSettle(work)
}

/**
 * A stream is sent up to its finish reason, and from there on when its call is settled, which is asked once.
 *
 * @param across the mode in which the line answers.
 */
export async function assertEndWaits(
  gateway: TestGateway,
  upstream: ScriptedUpstream,
  mode: Mode,
  across: Mode = mode,
): Promise<void> {
  const settled = Promise.withResolvers<void>()
  let asked = 0
  upstream.script = (res) => {
    settleWith(gateway, () => {
      asked++
      return settled.promise
    })
    return answer(res, across, 'Hello')
  }
  const response = await gateway.post(pathOf(mode), bodyOf(mode))
  let text = ''
  const reading = (async () => {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk as Uint8Array).toString()
  })()
  await until(() => asked === 1 && text.includes('Hello'))
  await sleep(40)
  assert.doesNotMatch(text, ENDS)
  settled.resolve()
  await reading
  assert.match(text, ENDS)
  assert.equal(asked, 1)
}
