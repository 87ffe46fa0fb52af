import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { embeddings } from '../../../../lib/core/operations/embeddings.ts'
import { messages, OPERATIONS } from '../../../../lib/core/operations/index.ts'
import { route } from '../../../../lib/middleware/route/index.ts'
import {
  BEGUN,
  idempotency,
  JSON_TYPE,
  PRICE,
  REST,
  routedCall,
  STREAM,
  turnOver,
} from '../support/routed-calls.ts'

const ANSWER = JSON.stringify({
  choices: [{ message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 50, completion_tokens: 7 },
})
const COMPLETED = { status: 200, errorCode: null, finish: 'completed' }

describe('a whole answer of a line', () => {
  it('is settled, and goes out as it came with what it used', async () => {
    const made = routedCall({ line: { cost: { perRequest: '1' } } })
    made.send()
    await made.answer(200, JSON_TYPE, ANSWER)
    made.over()
    assert.equal(await made.finished, 'done')
    assert.deepEqual(made.log, [`end ${ANSWER}`])
    assert.deepEqual([made.res.statusCode, made.res.getHeader('content-type')], [200, JSON_TYPE])
    const { usage, servedBy } = made.call
    assert.deepEqual([usage?.inputTokens, usage?.outputTokens, usage?.source], [50, 7, 'measured'])
    assert.deepEqual(servedBy, { line: 'line-1', price: PRICE, cost: made.line.cost })
    assert.ok(servedBy?.cost)
    assert.deepEqual(
      made.endings.map(({ outcome, unsent }) => [outcome, String(unsent)]),
      [[COMPLETED, ANSWER]],
    )
    assert.deepEqual(made.speeds.length, 1, 'only its first byte tells of the line')
    assert.equal(made.res.getHeader('x-gateway-dropped'), undefined)
  })

  it('that holds data goes out in its pieces', async () => {
    const text = JSON.stringify({ data: [{ embedding: [1, 2] }], usage: { prompt_tokens: 5 } })
    const made = routedCall({ operation: embeddings as never })
    made.send()
    await made.answer(200, JSON_TYPE, text.slice(0, 9), text.slice(9))
    made.over()
    await made.finished
    assert.deepEqual(made.log, [`write ${text.slice(0, 9)}`, `end ${text.slice(9)}`])
    assert.equal(made.res.getHeader('content-length'), text.length)
  })

  it('costs nothing, and belongs to no account, at an endpoint that is never charged', async () => {
    const operation = OPERATIONS.find(({ priceUnit }) => priceUnit === 'none')
    const made = routedCall({ operation: operation as never, line: { protocol: 'anthropic' } })
    made.send()
    await made.answer(200, JSON_TYPE, '{"input_tokens":12}')
    made.over()
    await made.finished
    assert.deepEqual(
      [made.log, made.call.usage, made.call.servedBy],
      [['end {"input_tokens":12}'], null, null],
    )
  })

  it('goes out once it is settled, and not at all where that fails or the call must not go on', async () => {
    const settling = Promise.withResolvers<void>()
    for (const how of ['late', 'fails', 'refused'] as const) {
      const made = routedCall({
        settles: () =>
          how === 'late' ? settling.promise : how === 'fails' ? Promise.reject(new Error('no')) : undefined,
      })
      const kept: string[] = []
      made.call.idempotency = idempotency(kept)
      if (how === 'refused')
        made.call.onAssertOwnsClaim(() => {
          throw new Error('lost')
        })
      made.send()
      await made.answer(200, JSON_TYPE, ANSWER)
      made.over()
      if (how === 'late') {
        await new Promise((resolve) => setImmediate(resolve))
        assert.deepEqual(made.log, [])
        settling.resolve()
      }
      const result = String(await made.finished)
      assert.equal(result, { late: 'done', fails: 'Error: no', refused: 'Error: lost' }[how])
      assert.deepEqual(made.log, how === 'late' ? [`end ${ANSWER}`] : [])
      assert.deepEqual(kept, how === 'fails' ? [ANSWER] : [], 'the stored answer has what was not sent')
    }
  })

  it('is kept for a repetition where its caller has left, who is sent nothing', async () => {
    const made = routedCall({ policy: { onDisconnect: 'drain', drainMs: 60_000 } })
    const kept: string[] = []
    made.call.idempotency = idempotency(kept)
    made.send()
    made.leave()
    assert.deepEqual([made.result, made.aborted], [undefined, []])
    await made.answer(200, JSON_TYPE, ANSWER)
    made.over()
    assert.equal(await made.finished, 'done')
    assert.deepEqual([made.log, kept, made.call.usage?.outputTokens], [[], [ANSWER], 7])
    assert.deepEqual(made.endings[0]?.outcome.status, 499)
    assert.deepEqual(made.result?.disconnect, { policy: 'drain', ended: 'drained' })
  })
})

describe('a request that is sent in another form', () => {
  const across = (stream: boolean) =>
    routedCall({
      operation: messages as never,
      members: { stream, max_tokens: 9, top_k: 5 },
      line: { unsupported: 'drop' },
    })

  it('names the members that were left out, with the answer or the head of its stream', async () => {
    for (const stream of [false, true]) {
      const made = across(stream)
      made.send()
      await made.answer(200, stream ? STREAM : JSON_TYPE, ...(stream ? [BEGUN, REST] : [ANSWER]))
      made.over()
      assert.equal(await made.finished, 'done')
      assert.equal(made.res.getHeader('x-gateway-dropped'), 'top_k')
      assert.deepEqual(made.result?.record?.dropped, ['top_k'])
    }
  })

  it('is not named in the record of a line that has the caller’s endpoint', async () => {
    const made = routedCall()
    made.send()
    await made.answer(200, JSON_TYPE, ANSWER)
    made.over()
    await made.finished
    const { record } = made.result ?? {}
    assert.deepEqual([record?.dropped, record?.outcome], [undefined, 'completed'])
  })
})

describe('a failure outside of an attempt', () => {
  const failing = async (error: Error, leaves: boolean) => {
    const made = routedCall()
    const nexts: unknown[] = []
    if (leaves) made.leave()
    const handler = route({
      catalog: () => {
        throw error
      },
    })
    handler(made.req as never, made.res as never, (error?: unknown) => void nexts.push(error))
    await turnOver()
    return { ...made, nexts }
  }

  it('is passed to the app', async () => {
    for (const error of [new GatewayError('no_candidate'), new Error('odd')]) {
      const { nexts, call } = await failing(error, false)
      assert.deepEqual([nexts.length, nexts[0]], [1, error])
      if (error instanceof GatewayError) assert.equal(Object.values(error.headers).includes(call.id), true)
    }
  })

  it('is not sent to a caller that has left, and is logged where it is a fault', async () => {
    for (const error of [new GatewayError('no_candidate'), new Error('odd')]) {
      const { nexts, logger, call } = await failing(error, true)
      assert.deepEqual(nexts, [])
      const logged = logger.lines.map(({ message, fields }) => [message, fields.err, fields.requestId])
      assert.deepEqual(logged, error instanceof GatewayError ? [] : [['routing failed', error, call.id]])
    }
  })
})
