import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { BEGUN, EVENTS, idempotency, REST, routedCall, STREAM, turnOver } from '../support/routed-calls.ts'

const COMPLETED = { status: 200, errorCode: null, finish: 'completed' }

describe('a stream of a line', () => {
  const streaming = (given: Parameters<typeof routedCall>[0] = {}) =>
    routedCall({ ...given, members: { stream: true, ...given.members } })

  it('goes out as it comes, and ends once it is settled', async () => {
    const made = streaming()
    made.send()
    await made.answer(200, STREAM, BEGUN)
    assert.deepEqual(made.log.slice(0, 2), ['success', 'head 200'])
    await made.more(REST)
    made.over()
    assert.equal(await made.finished, 'done')
    assert.match(made.log.at(-1) ?? '', /^end [\s\S]*"finish_reason":"stop"[\s\S]*\[DONE\]\n\n$/)
    assert.deepEqual(made.endings[0]?.outcome, COMPLETED)
    const [, throughput] = made.speeds
    assert.equal(made.speeds.length, 2)
    assert.equal(throughput?.[0], made.call.usage?.outputTokens)
    assert.ok((throughput?.[1] ?? -1) >= 0 && (throughput?.[1] ?? 0) < 60_000)
    assert.equal(made.call.usage?.source, 'measured')
  })

  it('that breaks off is charged for what came, and says not to send it again', async () => {
    const made = streaming()
    made.send()
    await made.answer(200, STREAM, BEGUN)
    made.breakOff()
    const error = await made.finished
    assert.ok(error instanceof GatewayError)
    assert.deepEqual(error.code, 'upstream_error')
    assert.match(error.message, /^The upstream ended the answer early\. The part you received is billed/)
    assert.deepEqual([made.call.usage?.source, made.speeds.length], ['estimated', 1])
    const { outcome, unsent } = made.endings[0] ?? {}
    assert.deepEqual([outcome?.finish, outcome?.errorCode, unsent], ['interrupted', 'upstream_error', null])
    assert.ok(!made.log.some((line) => line.startsWith('end')))
  })

  it('that breaks off leaves nothing for a repetition where its charge fails', async () => {
    const made = streaming({ settles: () => Promise.reject(new Error('no')) })
    const kept: string[] = []
    made.call.idempotency = idempotency(kept)
    made.send()
    await made.answer(200, STREAM, BEGUN)
    made.breakOff()
    assert.deepEqual([String(await made.finished), kept], ['Error: no', []])
  })

  it('is ended behind its head where its key is over, and charged for what came', async () => {
    const made = streaming()
    const followed: unknown[] = []
    let over = (_error: GatewayError): void => {}
    made.call.keyWatch = {
      follow: (call, end) => {
        followed.push(call)
        over = end
      },
    }
    made.send()
    await made.answer(200, STREAM, BEGUN)
    const expired = new GatewayError('key_expired')
    over(expired)
    assert.equal(made.result, undefined, 'what is under way goes out first')
    assert.equal(await made.finished, expired)
    assert.deepEqual(
      [made.endings[0]?.outcome.errorCode, made.call.usage?.source],
      ['key_expired', 'estimated'],
    )
    assert.equal(made.aborted.length, 1)

    const whole = streaming()
    whole.call.keyWatch = made.call.keyWatch
    whole.send()
    await whole.answer(200, STREAM, BEGUN, REST)
    whole.over()
    assert.equal(await whole.finished, 'done')
    over(expired)
    await turnOver()
    assert.deepEqual(whole.endings.length, 1, 'an end is an end')
    assert.deepEqual(followed, [made.call, whole.call])
  })

  it('is abandoned where its caller leaves, or read on for as long as it may be', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const aborting = streaming()
    aborting.send()
    await aborting.answer(200, STREAM, BEGUN)
    aborting.leave()
    assert.equal(await aborting.finished, 'done')
    assert.deepEqual([aborting.call.usage?.source, aborting.aborted.length], ['estimated', 1])
    assert.equal(aborting.endings[0]?.outcome.errorCode, 'client_closed_request')
    for (const given of [
      { policy: { onDisconnect: 'drain', drainMs: 1000 } },
      { members: { features: new Set(['reasoning']) } },
    ] as const) {
      const made = streaming(given)
      const kept: string[] = []
      made.call.idempotency = idempotency(kept)
      made.send()
      await made.answer(200, STREAM, BEGUN)
      made.leave()
      t.mock.timers.tick(999)
      const last = EVENTS[2] as string
      await made.more(last)
      assert.equal(made.result, undefined)
      t.mock.timers.tick(1)
      assert.equal(await made.finished, 'done')
      assert.equal(kept.join(''), last, 'what came behind is not sent')
      assert.ok(!made.log.some((line) => line.includes(last)))
    }
    const unsent = streaming({ members: { features: new Set(['reasoning']) } })
    unsent.send(false)
    unsent.leave()
    await unsent.finished
    assert.equal(unsent.result?.kind, 'abandoned', 'nothing is thought where nothing was sent')
    assert.equal(unsent.call.usage, null)
  })

  it('has no head where its caller left before it', async () => {
    const made = streaming({ policy: { onDisconnect: 'drain', drainMs: 60_000 } })
    made.send()
    made.leave()
    await made.answer(200, STREAM, BEGUN, REST)
    made.over()
    assert.equal(await made.finished, 'done')
    assert.deepEqual(made.log, ['success'])
    assert.deepEqual(made.result?.disconnect, { policy: 'drain', ended: 'drained' })
  })

  it('is read on while its caller takes nothing, up to a few chunks, and goes on when it does', async () => {
    const large = EVENTS[1]?.replace('"Hi"', JSON.stringify('x'.repeat(40_000))) as string
    const made = streaming({ takes: () => false })
    made.send()
    await made.answer(200, STREAM, BEGUN, large, large, large)
    const writes = () => made.log.filter((line) => line.startsWith('write')).length
    const first = writes()
    assert.equal(made.log.at(-1), 'pause')
    assert.ok(!made.log.join('').includes('xxx'), 'nothing is written before the caller takes what was')
    made.res.emit('drain')
    await turnOver()
    assert.deepEqual([writes(), made.log.includes('resume')], [first + 1, true])
    await made.more(REST)
    made.over()
    assert.equal(await made.finished, 'done', 'what has come whole is not waited for')
    assert.equal(made.log.filter((line) => line.startsWith('end')).length, 1)
  })

  it('is kept for a repetition behind what a slow caller got before it left', async () => {
    const made = streaming({ takes: () => false, policy: { onDisconnect: 'drain', drainMs: 60_000 } })
    const kept: string[] = []
    made.call.idempotency = idempotency(kept)
    made.send()
    await made.answer(200, STREAM, BEGUN)
    made.leave()
    await made.more(REST)
    made.over()
    assert.equal(await made.finished, 'done')
    const withoutUsage = EVENTS.filter((event) => !event.includes('"usage"')).join('')
    assert.equal(BEGUN + kept.join(''), withoutUsage)
  })
})
