import type { RequestBody } from '../../core/call/index.ts'
import type { Operation, RequestFacts, TokenEstimator } from '../../core/operations/index.ts'

/** So much text is estimated in one turn of the event loop. Read whole, it takes about 15 ms. */
const CHARS_PER_TURN = 1024 * 1024

/** Returns the estimator of a request by the characters of its texts. */
type EstimatorFor = (length: number) => TokenEstimator

/** Texts in a shorter body are read whole, however many characters they are. */
const SHORT_BYTES = 64 * 1024

/** Reads the facts of a body at once. */
export function factsOf(operation: Operation, body: RequestBody, estimatorFor: EstimatorFor): RequestFacts {
  const { json, raw } = body
  const length = raw.length <= SHORT_BYTES ? 0 : lengthOf(textsOf(operation, body))
  return operation.facts(json, raw, estimatorFor(length))
}

/**
 * Reads the facts of a large body. An estimate of its texts may take long. So they are gathered first, then estimated turn
 * by turn, and their estimates are handed to `facts` in the same order.
 *
 * @param nextTurn resolves when the event loop has served others.
 * @throws what `facts` throws, or what `nextTurn` rejects with.
 */
export async function factsInTurns(
  operation: Operation,
  body: RequestBody,
  estimatorFor: EstimatorFor,
  nextTurn: () => Promise<void>,
): Promise<RequestFacts> {
  const texts = textsOf(operation, body)
  const estimate = estimatorFor(lengthOf(texts))
  const tokens = new Array<number>(texts.length)
  let left = 0
  for (const [i, text] of texts.entries()) {
    let sum = 0
    let at = 0
    do {
      if (left <= 0) {
        await nextTurn()
        left = CHARS_PER_TURN
      }
      const piece = text.length <= CHARS_PER_TURN ? text : text.slice(at, at + CHARS_PER_TURN)
      sum += estimate(piece)
      at += piece.length
      // Texts cost something even if they are empty.
      left -= piece.length + 8
    } while (at < text.length)
    tokens[i] = sum
  }
  await nextTurn()
  let next = 0
  return operation.facts(body.json, body.raw, () => tokens[next++] ?? 0)
}

/** Returns the texts that are estimated, in their order. */
function textsOf(operation: Operation, { json, raw }: RequestBody): string[] {
  const texts: string[] = []
  operation.facts(json, raw, (text) => {
    texts.push(text)
    return 0
  })
  return texts
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0)
}
