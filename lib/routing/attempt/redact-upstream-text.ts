/**
 * The words that the trace keeps of an upstream's error. Words that only hold a sentence together are not among them, so
 * that no phrase of a prompt is kept by chance.
 */
const VOCABULARY: ReadonlySet<string> = new Set(
  `abort aborted access account action active address agent allocation allowed another api argument arguments array
  assistant at attempt audio auth authentication authorization available away bad balance base batch bearer before
  began beta bias billing block blocked body bool boolean broke broken bucket budget busy bytes cache cached call
  calls cancel cancelled cannot capacity certificate channel character characters chat check choice choices choose
  chunk circuit claude client closed cluster code column completion completions component concurrency concurrent
  config configuration conflict connect connection container content context conversation could count create created
  credential credentials credit credits ctx current currently data date deadline deployment deprecated description
  detected device died different dimension dimensions directory disabled disk document does down duplicate duration
  during each effort embedding embeddings empty encoding endpoint engine enough entity entry error errors event exceed
  exceeded exceeds exception exhausted expected expired external extra fail failed fails failure fatal feature fetch
  field fields file files filter filtered first flagged forbidden format found frame free frequency function gateway
  generate generation global group handle header headers higher host http https identifier image images inactive
  incident incomplete incorrect incorrectly index input inputs inspection instance instruction instructions
  insufficient integer internal interval invalid item items json key keys kind language large last later length level
  limit limited limits line lines list load loaded local location lock logit logprobs long lower maintenance malformed
  management many match max maximum media member memory message messages metadata method metric min minimum minute
  minutes missing modality mode model models moderation mp multipart must name network no node none normalization not
  null num number object offline one open operation option options organization out output outputs overdue overload
  overloaded owner page pages parallel param parameter parameters parse parsing part parts path payload payment
  penalty per permission permitted pixel pixels plan please policy pool port position possible prefill prefix presence
  previous problem process processing profile project prompt prompts property protocol provide provided provider proxy
  public purchase quantity query queue quota range rate reached read reason reasoning received record region rejected
  release remaining request requested requests required requires reset resource resources response responses
  responsible restart restricted result results retry returned role roles routing rpm rule run safety scheduled schema
  scope second seconds seed segment send sensitive sent server servers service session set setting settings short size
  slow socket specified speech start started state status stop stopped storage store stream streaming string
  subscription supplied support supported suspended syntax system task temperature temporarily tenant text thinking
  thread throttled throttling tier tile time timed timeout timestamp tls token tokens tool tools top total tpm traffic
  transport trial truncated try type types unable unauthorized unavailable unexpected unknown unprocessable
  unreachable unsupported until unverified update upload upstream url usage use used user valid validation value
  values variable vector verified version video violation vision volume wait warming wrong zone`.split(/\s+/),
)

const MAX_READ = 2000
const MAX_KEPT = 200

/** Words that identifiers join, such as `invalid_request_error`, `ServerOverloaded`, `messages[].content` and `RATE_LIMIT`. */
const WORD = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g
const IDENTIFIER = /^[A-Za-z]+(?:(?:_|-|\.|\[\]\.?)[A-Za-z]+)*$/

/** Matches quoted text, and text behind a quote that was cut. An apostrophe within a word is none. */
const QUOTED = /"[^"]*(?:"|$)|`[^`]*(?:`|$)|(?<![\p{L}\p{N}])'[^']*(?:'|$)/gu

/**
 * Returns what the trace may keep of an upstream's text: the words of errors, outside quotes. All else becomes `…`. The
 * text may quote the request, whose words are never kept, in any escaping or case and cut anywhere; and it may quote the
 * key that the upstream rejects. No list of escapings would be complete, so the words are listed that are kept.
 *
 * @example
 * redactUpstreamText('Incorrect API key provided: sk-12345. Find yours at https://example.com')
 * // 'Incorrect API key provided … at https …'
 */
export function redactUpstreamText(text: string): string {
  let kept = ''
  let isOmitting = false
  for (const token of text
    .slice(0, MAX_READ)
    .replace(QUOTED, ' % ')
    .split(/[^\p{L}\p{N}\p{M}_.[\]%&#\\+/=-]+/u)) {
    const word = token.replace(/\[\d{1,3}\]/g, '[]').replace(/[.[\]]+$/, '')
    if (word === '') continue
    const next = isKnown(word) ? word : '…'
    if (next === '…' && isOmitting) continue
    isOmitting = next === '…'
    if (kept.length + next.length > MAX_KEPT) return isOmitting ? kept : `${kept} …`
    kept = kept === '' ? next : `${kept} ${next}`
  }
  return kept
}

/** Whether a word, or each word of an identifier such as `messages[0].content`, is one of errors. */
export function isErrorWord(word: string): boolean {
  return isKnown(word.replace(/\[\d{1,3}\]/g, '[]'))
}

function isKnown(token: string): boolean {
  if (!IDENTIFIER.test(token)) return false
  return token.match(WORD)?.every((word) => VOCABULARY.has(word.toLowerCase())) ?? false
}
