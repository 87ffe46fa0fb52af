import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallRequest } from '../../../lib/core/call/index.ts'
import { FREE, type Line } from '../../../lib/core/catalog/index.ts'
import type { StreamReader } from '../../../lib/core/operations/index.ts'
import { reasonsUnseen, usageOfLeft } from '../../../lib/middleware/route/attempt/left-usage.ts'
import type { Candidate } from '../../../lib/routing/candidates/candidate.ts'

const HELD = 5000

interface Given {
  modelReasons?: boolean
  lineReasons?: boolean
  asksToReason?: boolean
  priceUnit?: 'tokens' | 'images'
  perImage?: bigint
  connectMs?: number | null
  durationMs?: number
  status?: number | null
  isKeyed?: boolean
  answers?: number
  reader?: Partial<StreamReader>
}

const featured = (has: boolean | undefined) => ({ features: new Set(has ? ['reasoning'] : []) })

function requestOf({ modelReasons, asksToReason, priceUnit = 'tokens', answers = 1 }: Given): CallRequest {
  return {
    operation: { priceUnit },
    model: { maxOutputTokens: HELD, ...featured(modelReasons) },
    ...featured(asksToReason),
    estimatedInputTokens: 40,
    answers,
    units: priceUnit === 'images' ? 3 : 0,
    tools: 0,
    webSearches: 0,
    body: { raw: Buffer.from('{}'), json: {} },
  } as unknown as CallRequest
}

function left(given: Given) {
  const { connectMs = 10, durationMs = 1010, status = null, isKeyed = false, reader } = given
  const candidate = {
    line: featured(given.lineReasons),
    price: { ...FREE, perImage: given.perImage ?? 1n },
    contextWindow: undefined,
  } as unknown as Candidate
  const read = reader && {
    whole: false,
    estimatedOutput: 9,
    unreportedOutput: 9,
    usage: {},
    substance: 'output',
    ...reader,
  }
  return usageOfLeft(
    requestOf(given),
    read as StreamReader | undefined,
    candidate,
    { connectMs, durationMs, status },
    isKeyed,
  )
}

const used = (given: Given) => {
  const usage = left(given)
  return usage && [usage.inputTokens, usage.outputTokens, usage.images, usage.source]
}

describe('what a caller that has left is charged for', () => {
  it('is nothing where the line did not have the request, or refused it', () => {
    for (const given of [{ connectMs: null }, { status: 400 }, { status: 500 }, { status: 201 }] as const)
      for (const modelReasons of [true, false]) assert.equal(left({ ...given, modelReasons }), null)
    assert.notEqual(left({ status: 200 }), null)
    assert.notEqual(left({ status: null }), null)
  })

  it('is what a plain answer can have come to in its time, and no more than was held', () => {
    assert.deepEqual(used({}), [40, 1000, undefined, 'estimated'])
    assert.deepEqual(used({ connectMs: 0, durationMs: 0.1 }), [40, 1, undefined, 'estimated'])
    assert.deepEqual(used({ connectMs: 500, durationMs: 1000 }), [40, 500, undefined, 'estimated'])
    assert.deepEqual(used({ answers: 3 }), [40, 3000, undefined, 'estimated'])
    assert.deepEqual(used({ connectMs: 0, durationMs: HELD + 1 }), [40, HELD, undefined, 'estimated'])
    assert.deepEqual(used({ connectMs: 10, durationMs: 10 }), [40, 0, undefined, 'estimated'])
  })

  it('is all that was held for where the model, its line or the request reasons', () => {
    for (const given of [{ modelReasons: true }, { lineReasons: true }, { asksToReason: true }]) {
      assert.deepEqual(used(given), [40, HELD, undefined, 'estimated'])
      const reader = { usage: { inputTokens: 50 } }
      assert.deepEqual(used({ ...given, reader }), [50, HELD, undefined, 'estimated'])
      const more = { estimatedOutput: HELD + 1 }
      assert.deepEqual(used({ ...given, reader: more }), [40, HELD + 1, undefined, 'estimated'])
      const told = { whole: true, unreportedOutput: 0, usage: { inputTokens: 50, outputTokens: 7 } }
      assert.deepEqual(used({ ...given, reader: told }), [50, 7, undefined, 'measured'])
      assert.equal(reasonsUnseen(requestOf(given), featured(given.lineReasons) as unknown as Line), true)
    }
    assert.equal(reasonsUnseen(requestOf({}), featured(false) as unknown as Line), false)
    assert.equal(reasonsUnseen({ ...requestOf({}), model: {} } as CallRequest, {} as Line), false)
  })

  it('is the output that came of a stream, where nothing is thought unseen', () => {
    assert.deepEqual(used({ reader: {} }), [40, 9, undefined, 'estimated'])
    assert.deepEqual(used({ reader: { usage: { outputTokens: 20 } } }), [40, 29, undefined, 'estimated'])
  })

  it('is nothing before the output of a call that may be sent again, unless it is thought unseen', () => {
    const nothingYet = { substance: 'none' } as unknown as Partial<StreamReader>
    assert.equal(left({ isKeyed: true }), null)
    assert.equal(left({ isKeyed: true, reader: nothingYet }), null)
    for (const substance of ['output', 'refusal'] as const)
      assert.notEqual(left({ isKeyed: true, reader: { substance } }), null)
    assert.notEqual(left({ reader: nothingYet }), null)
    assert.notEqual(left({ isKeyed: true, modelReasons: true }), null)
  })

  it('is every image that was asked for, where an answer of images has not come', () => {
    assert.deepEqual(left({ priceUnit: 'images' })?.images, 3)
    assert.equal(left({ priceUnit: 'images' })?.source, 'estimated')
    const byTokens = used({ priceUnit: 'images', perImage: 0n, durationMs: 10 })
    assert.deepEqual(byTokens, [40, 3 * HELD, 3, 'estimated'], 'however early')
    assert.deepEqual(used({ durationMs: 10 }), [40, 0, undefined, 'estimated'])
  })
})
