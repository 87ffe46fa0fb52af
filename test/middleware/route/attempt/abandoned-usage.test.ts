import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallRequest } from '../../../../lib/core/call/index.ts'
import { FREE, type Line } from '../../../../lib/core/catalog/index.ts'
import type { StreamReader } from '../../../../lib/core/operations/index.ts'
import { reasonsUnseen, usageOfLeft } from '../../../../lib/middleware/route/attempt/abandoned-usage.ts'
import type { Candidate } from '../../../../lib/routing/candidates/candidate.ts'

const HELD = 5000

interface Given {
  modelReasons?: boolean
  lineReasons?: boolean
  asksToReason?: boolean
  priceUnit?: 'tokens' | 'images'
  perImage?: bigint
  isSent?: boolean
  hadBegun?: boolean
  came?: number
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
  const { isSent = true, status = 200, hadBegun = status === 200, came = 0, isKeyed = false, reader } = given
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
  const attempt = {
    isSent,
    status,
    hadBegun,
    reader: read as StreamReader | undefined,
    estimateOutput: () => came,
  }
  return usageOfLeft(requestOf(given), candidate, attempt, isKeyed)
}

const used = (given: Given) => {
  const usage = left(given)
  return usage && [usage.inputTokens, usage.outputTokens, usage.images, usage.source]
}

describe('the charge for a caller that has left', () => {
  it('is nothing where the line did not have the request, or refused it', () => {
    for (const given of [{ isSent: false, status: null }, { status: 400 }, { status: 500 }, { status: 201 }])
      for (const modelReasons of [true, false]) assert.equal(left({ ...given, modelReasons }), null)
    assert.notEqual(left({ status: 200 }), null)
    assert.notEqual(left({ status: null }), null)
  })

  it('is its input where the line had sent nothing, whatever the model does unseen', () => {
    const silent = { status: null }
    for (const given of [{}, { modelReasons: true }, { lineReasons: true }, { asksToReason: true }])
      assert.deepEqual(used({ ...silent, ...given }), [40, 0, undefined, 'estimated'])
    assert.deepEqual(used({ ...silent, priceUnit: 'images', perImage: 0n }), [40, 0, 0, 'estimated'])
    assert.deepEqual(used({ ...silent, priceUnit: 'images' }), [0, 0, 0, 'estimated'])
  })

  it('is its input, and what came later, where the line began to answer after the caller had left', () => {
    const late = { hadBegun: false, modelReasons: true }
    assert.deepEqual(used(late), [40, 0, undefined, 'estimated'])
    assert.deepEqual(used({ ...late, reader: {} }), [40, 9, undefined, 'estimated'])
    const told = { whole: true, unreportedOutput: 0, usage: { inputTokens: 50, outputTokens: 7 } }
    assert.deepEqual(used({ ...late, reader: told }), [50, 7, undefined, 'measured'])
  })

  it('is the part of a plain answer that came, and no more than was held', () => {
    assert.deepEqual(used({ came: 12 }), [40, 12, undefined, 'estimated'])
    assert.deepEqual(used({ came: HELD + 1 }), [40, HELD, undefined, 'estimated'])
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

  it('is the output that arrived of a stream, on models without unseen reasoning', () => {
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

  it('is every image that was asked for, where an answer of images has begun and not come', () => {
    assert.deepEqual(left({ priceUnit: 'images' })?.images, 3)
    assert.equal(left({ priceUnit: 'images' })?.source, 'estimated')
    const byTokens = used({ priceUnit: 'images', perImage: 0n })
    assert.deepEqual(byTokens, [40, 3 * HELD, 3, 'estimated'])
  })
})
