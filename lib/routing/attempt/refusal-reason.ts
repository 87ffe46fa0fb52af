import type { ErrorReason, ReasonKind } from '../../core/errors/index.ts'
import type { UpstreamError } from './upstream-error.ts'

/** The member of the request that stands before some texts, such as `messages.3.content.0: `. */
const PLACE = String.raw`^\W*(?:[\w.[\]]{1,200}: )?`

/**
 * How upstreams name what clients act on. Only the reason and its figures reach the caller, in the words of
 * `CLIENT_PHRASES`; the upstream's text may quote the request, and stays in the call log.
 */
const REASONS: readonly (readonly [ReasonKind, RegExp])[] = [
  [
    'output_limit',
    /^\W*max_tokens: (?<output>\d{1,9}) > (?<limit>\d{1,9}), which is the maximum allowed number/i,
  ],
  [
    'output_limit',
    /^\W*max_tokens is too large: (?<output>\d{1,9})\. This model supports at most (?<limit>\d{1,9})/i,
  ],
  [
    'thinking_signature',
    new RegExp(`${PLACE}invalid .{0,2}(?:signature|data).{0,2} in .?(?:redacted_)?thinking`, 'i'),
  ],
  ['thinking_signature', /thinking\.signature\b.{0,20}\bfield required/i],
  ['thinking_signature', /\b(?:redacted_)?thinking\W{1,3}blocks? .{0,120}\bcannot be modified/i],
  // Gemini's, and OpenAI's for reasoning that another organization encrypted.
  ['thinking_signature', /^\W*(?:(?:corrupted|invalid) thought.?signature|thought.?signature is not valid)/i],
  ['thinking_signature', /^\W*the encrypted content .{0,400}could not be (?:verified|decrypted)/i],
  ['thinking_enabled', /thinking\.type[^a-z]{1,8}enabled\b.{0,40}\bnot supported/i],
  [
    'thinking_adaptive',
    /thinking\.type[^a-z]{1,8}adaptive\b.{0,40}\bnot supported|\badaptive thinking is not supported/i,
  ],
  ['effort', /\bnot support.{0,40}\beffort parameter|\beffort parameter\b.{0,60}\bnot support/i],
  ['image_too_large', new RegExp(`${PLACE}image exceeds .{0,60}maximum`, 'i')],
  ['image_dimensions', /\bimage dimensions exceed\b/i],
  [
    'image_invalid',
    /\bcould not process image\b|\bimage (?:does not match the provided media type|cannot be empty)/i,
  ],
  ['image_invalid', /\bdoes not represent a valid image\b|\bgot empty base64-encoded bytes\b/i],
  ['too_much_media', /\btoo much media\b/i],
  ['pdf_pages', /\bmaximum of (?<limit>\d{1,9}) PDF pages\b/i],
  ['pdf_password', /\bPDF specified is password protected\b/i],
  ['pdf_invalid', /\bcould not process PDF\b|\bPDF specified was not valid\b|\bPDF cannot be empty\b/i],
]

/** The codes that say as much as a text. */
const KIND_BY_CODE: ReadonlyMap<string, ReasonKind> = new Map([
  ['invalid_encrypted_content', 'thinking_signature'],
  ['invalid_image', 'image_invalid'],
  ['invalid_base64_image', 'image_invalid'],
  ['image_parse_error', 'image_invalid'],
  ['empty_image_file', 'image_invalid'],
  ['image_too_large', 'image_too_large'],
])

/** Returns why an upstream refused a request, if clients act on it. */
export function reasonOf({ code, message }: UpstreamError): ErrorReason | undefined {
  const kind = KIND_BY_CODE.get(code)
  if (kind !== undefined) return { kind }
  for (const [named, text] of REASONS) {
    const match = text.exec(message)
    if (!match) continue
    const { output, limit } = match.groups ?? {}
    return { kind: named, ...(limit && { numbers: { output: numberOf(output), limit: Number(limit) } }) }
  }
  return undefined
}

/** The figures of a refusal for the context, as Anthropic, OpenAI, OpenRouter, vLLM, Kimi, Grok and Gemini name them. */
const CONTEXT_FIGURES: readonly RegExp[] = [
  new RegExp(`${PLACE}prompt is too long: (?<input>\\d{1,9}) tokens > (?<limit>\\d{1,9}) maximum`, 'i'),
  /^\W*input length and .?max_tokens.? exceed context limit: (?<input>\d{1,9}) \+ (?<output>\d{1,9}) > (?<limit>\d{1,9})/i,
  /^\W*max\w{1,40}\W.{0,60} is too large: (?<output>\d{1,9})\. This model's maximum context length is (?<limit>\d{1,9}) tokens and your request has (?<input>\d{1,9}) input tokens/i,
  /^\W*this \w+['’]s maximum context length is (?<limit>\d{1,9}) tokens\. However, you requested (?:about )?(?<total>\d{1,9}) tokens \([^)]{0,80}?(?<output>\d{1,9}) in the (?:completion|output)\)/i,
  /^\W*this \w+['’]s maximum context length is (?<limit>\d{1,9}) tokens\. However, (?:you requested|your messages resulted in|your request has) (?<input>\d{1,9}) (?:input )?tokens/i,
  /exceeded model token limit: (?<limit>\d{1,9}) \(requested: (?<input>\d{1,9})\)/i,
  /^\W*this model's maximum prompt length is (?<limit>\d{1,9}) but the request contains (?<input>\d{1,9}) tokens/i,
  /^\W*the input token count \((?<input>\d{1,9})\) exceeds the maximum number of tokens allowed \((?<limit>\d{1,9})\)/i,
]

/** Returns the reason for a context that is too long at the upstream. Its figures are known only if it names them. */
export function contextReasonOf({ message, counted }: UpstreamError): ErrorReason {
  if (counted) return { kind: 'context', numbers: counted }
  for (const text of CONTEXT_FIGURES) {
    const { input, output, total, limit } = text.exec(message)?.groups ?? {}
    if (limit === undefined) continue
    const asked = numberOf(output)
    const read = numberOf(input) ?? Number(total) - (asked ?? 0)
    return { kind: 'context', numbers: { input: read, output: asked, limit: Number(limit) } }
  }
  return { kind: 'context' }
}

function numberOf(digits: string | undefined): number | undefined {
  return digits === undefined ? undefined : Number(digits)
}
