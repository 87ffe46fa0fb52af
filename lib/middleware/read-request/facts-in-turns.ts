import type { RequestBody } from '../../core/call/index.ts'
import type { Operation, RequestFacts, TokenEstimator } from '../../core/operations/index.ts'

/** So much text is estimated in one turn of the event loop. It takes about 15 ms. */
const CHARS_PER_TURN = 1024 * 1024

/**
 * Reads the facts of a large body. Estimating its texts takes up to a third of a second. So they are gathered first,
 * then estimated turn by turn, and their estimates are handed to `facts` in the same order.
 *
 * @param nextTurn resolves when the event loop has served others.
 * @throws what `facts` throws, or what `nextTurn` rejects with.
 */
export async function factsInTurns(
  operation: Operation,
  { json, raw }: RequestBody,
  estimate: TokenEstimator,
  nextTurn: () => Promise<void>,
): Promise<RequestFacts> {
  const texts: string[] = []
  operation.facts(json, raw, (text) => {
    texts.push(text)
    return 0
  })
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
  return operation.facts(json, raw, () => tokens[next++] ?? 0)
}
