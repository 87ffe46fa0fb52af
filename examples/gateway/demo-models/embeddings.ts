import type { DataEndpoint } from './data-endpoint.ts'
import { readInputs } from './inputs.ts'
import { readCount, readText } from './prompt.ts'
import { countTokens } from './tokens.ts'

const DIMENSIONS = 256
const MAX_DIMENSIONS = 3072

/** Serves `POST /v1/embeddings`. Texts that share words get similar vectors. */
export const embeddings: DataEndpoint = {
  read(body) {
    const model = readText(body, 'model')
    const texts = readInputs(body, 'input')
    const dimensions = readCount(body, 'dimensions', DIMENSIONS, MAX_DIMENSIONS)
    const inputTokens = texts.reduce((sum, text) => sum + countTokens(text), 0)
    const form = body.encoding_format === 'base64' ? base64Of : numbersOf
    return {
      model,
      inputTokens,
      answer: (withheld) => ({
        object: 'list',
        data: withheld
          ? []
          : texts.map((text, index) => ({
              object: 'embedding',
              index,
              embedding: form(vectorOf(text, dimensions)),
            })),
        model,
        usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
      }),
    }
  },
}

const numbersOf = (vector: Float32Array): number[] => Array.from(vector)
const base64Of = (vector: Float32Array): string => Buffer.from(vector.buffer).toString('base64')

/** Adds a pseudo-random direction for each word and scales the sum to length 1. */
function vectorOf(text: string, dimensions: number): Float32Array<ArrayBuffer> {
  const vector = new Float32Array(dimensions)
  for (const word of text.toLowerCase().split(/\W+/)) {
    let state = 7
    for (const character of word) state = (Math.imul(state, 31) + (character.codePointAt(0) ?? 0)) | 0
    for (let i = 0; i < dimensions; i++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
      vector[i] = (vector[i] ?? 0) + state / 2 ** 31
    }
  }
  const length = Math.hypot(...vector)
  return vector.map((value) => value / length)
}
