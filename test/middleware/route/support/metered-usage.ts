import type { CallRequest } from '../../../../lib/core/call/index.ts'
import { FREE } from '../../../../lib/core/catalog/index.ts'
import type { ReportedUsage, StreamReader } from '../../../../lib/core/operations/index.ts'
import { usageOfAnswer, usageOfStream } from '../../../../lib/middleware/route/attempt/metering.ts'

export const WINDOW = 1000
/** The tokens that a hold covers: 1.25 × the estimated input, and the output of each answer. */
export const HELD = { input: 50, output: 300 }

export const requestOf = (priceUnit: string, members: object = {}) =>
  ({
    operation: { priceUnit },
    model: { maxOutputTokens: HELD.output },
    estimatedInputTokens: 40,
    answers: 1,
    units: priceUnit === 'tokens' ? 0 : 2,
    tools: 0,
    body: { json: {} },
    ...members,
  }) as unknown as CallRequest

/** The usage of a whole answer, whose output is estimated at 9 tokens. */
export const used = (priceUnit: string, usage: ReportedUsage, price: object = {}, members: object = {}) =>
  usageOfAnswer(
    requestOf(priceUnit, members),
    { usage, estimateOutput: () => 9 },
    { price: { ...FREE, ...price }, contextWindow: WINDOW },
  )

export const plain = (inputTokens: number, outputTokens: number, source: string) => ({
  inputTokens,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens,
  source,
})

/** The usage of a stream whose output is estimated at 9 tokens. */
export const streamed = (reader: Partial<StreamReader>, priceUnit = 'tokens', price: object = {}) =>
  usageOfStream(
    requestOf(priceUnit),
    {
      whole: true,
      estimatedOutput: 9,
      unreportedOutput: 0,
      usage: { inputTokens: 50, outputTokens: 7 },
      ...reader,
    } as StreamReader,
    { price: { ...FREE, ...price }, contextWindow: WINDOW },
  )
