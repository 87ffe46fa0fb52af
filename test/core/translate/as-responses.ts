import OpenAI from 'openai'
import type { Translator } from '../../../lib/core/translate/translation.ts'
import { type LineProtocol, relayTranslated } from './relayed.ts'

/** An OpenAI client whose answers are what a translation makes of these events of a line. */
export function clientOn(
  line: LineProtocol,
  passage: Translator,
  events: readonly string[],
  request: Record<string, unknown> = {},
): OpenAI {
  const fetch = async (): Promise<Response> => {
    const { text, end, detail } = relayTranslated(line, events.join(''), { passage, request })
    if (end !== 'complete') throw new Error(String(detail))
    return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
  }
  return new OpenAI({ apiKey: 'none', maxRetries: 0, fetch })
}
