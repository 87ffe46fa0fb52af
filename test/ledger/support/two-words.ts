import type { Tokens } from '../../middleware/billing-guard/billed-gateway.ts'
import { eventsOf, type Mode } from '../../support/exchange.ts'

/** The words of a stream that does not come to its end. */
export const WORDS = ['Once', ' upon']

/** Its events up to and with the first that holds a text. */
export function upTo(mode: Mode, text: string): string[] {
  const events = eventsOf(mode, WORDS)
  return events.slice(0, events.findIndex((event) => event.includes(text)) + 1)
}

/** The tokens charged for after both words: a message stream reports its input at the start, a chat stream does not. */
export function twoWords({ protocol }: Mode): Tokens {
  return [protocol === 'anthropic' ? 7 : null, 0, 0, 2]
}
