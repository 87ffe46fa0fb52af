import { isJsonObject, type JsonObject } from '../../core/json/index.ts'
import { isErrorWord, redactUpstreamText } from './redact-upstream-text.ts'

export interface SentBody {
  readonly raw: Buffer
  readonly json: JsonObject
}

/** In a larger body, the search for each word would take too long. */
const MAX_BODY_BYTES = 256 * 1024
const MAX_READ = 2000
const MAX_KEPT = 500

/**
 * Returns an upstream's message without what it quotes of the request. A word is kept if it is one of errors, or if it is
 * a plain word that the request does not have; in any case not within a run of words that the request has, too. All else
 * becomes `…`.
 *
 * @param sent the body that the message is about; undefined if it is not known, and then only words of errors are kept.
 */
export function redactPrompt(message: string, sent: SentBody | undefined): string {
  if (!sent || sent.raw.length > MAX_BODY_BYTES) return redactUpstreamText(message)
  const tokens = tokensOf(message.slice(0, MAX_READ))
  const texts = textsIn(sent.json)
  // A form has no raw bytes.
  if (texts.length > MAX_BODY_BYTES) return redactUpstreamText(message)
  const prompt = condensed(texts)
  const backwards = Array.from(prompt).reverse().join('')
  const has = (text: string): boolean => text !== '' && (prompt.includes(text) || backwards.includes(text))
  const isKept = tokens.map((token, i) => isKnown(token.word) || isForeign(tokens, i, has))
  dropRuns(tokens, isKept, (text) => prompt.includes(text))
  return joined(tokens, isKept)
}

/** A word of a message, and the marks before it. */
interface Token {
  readonly before: string
  readonly word: string
}

const TOKEN = /([^\p{L}\p{N}\p{M}_.[\]%&#\\+/=-]*)([\p{L}\p{N}\p{M}_.[\]%&#\\+/=-]+)/gu

function tokensOf(message: string): readonly Token[] {
  let dots = ''
  return Array.from(message.matchAll(TOKEN), ([, marks = '', given = '']) => {
    const word = given.replace(/[.[]+$/, '')
    const before = dots + marks
    dots = given.slice(word.length)
    return { before, word }
  })
}

/** The words that hold sentences together. One alone shows nothing of a prompt. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  `a an and are as be been but by can did do does for from had has have in is it its more must no not of on only or should
  s t than that the their these this those to was we were when which will with without you your`.split(/\s+/),
)

function isKnown(word: string): boolean {
  return STOP_WORDS.has(word.toLowerCase()) || isErrorWord(word)
}

/** One case, as words are written: base64 and the like are not. */
const WORD = /^(?:[A-Z]?[a-z]{2,19}|[A-Z]{2,20})$/
const VOWEL = /[aeiouy]/i
/** Names of members, such as `top_k` and `messages.0.content`. */
const NAME = /^[a-z]+(?:\[\d{1,3}\]|[_.](?:[a-z]+|\d{1,3}))*$/
const NUMBER = /^\d{1,9}(?:\.\d{1,3})?$/

/** Whether a token is a plain word, a name or a single number that the request does not have. */
function isForeign(tokens: readonly Token[], at: number, has: (text: string) => boolean): boolean {
  const word = tokens[at]?.word ?? ''
  if (WORD.test(word)) return VOWEL.test(word) && !has(condensed(word))
  if (NUMBER.test(word)) return !isCode(tokens[at - 1]) && !isCode(tokens[at + 1]) && !has(condensed(word))
  if (word.length > 60 || !NAME.test(word) || has(condensed(word))) return false
  const parts = word.split(/[_.[\]\d]+/).filter((part) => part.length > 1)
  return parts.length > 0 && parts.every((part) => isErrorWord(part) || (VOWEL.test(part) && !has(part)))
}

/** Whether a token may be one of several numbers that stand for characters. */
function isCode(token: Token | undefined): boolean {
  return token !== undefined && /^[\da-fx]*\d[\da-f]*$/i.test(token.word)
}

/** Two words of this length, or three words, that stand together in the request are a run of it. */
const MIN_RUN_LENGTH = 12

/** Drops words that are single words of errors, but together a part of the request. */
function dropRuns(tokens: readonly Token[], isKept: boolean[], has: (text: string) => boolean): void {
  const words = tokens.flatMap(({ word }, at) => partsOf(word).map((text) => ({ at, text })))
  for (let from = 0; from < words.length; from++) {
    let run = words[from]?.text as string
    let to = from
    if (!has(run)) continue
    for (let next = words[to + 1]; next && has(run + next.text); next = words[to + 1]) {
      run += next.text
      to++
    }
    const length = to + 1 - from
    if (length >= 3 || (length === 2 && run.length >= MIN_RUN_LENGTH)) {
      isKept.fill(false, words[from]?.at, (words[to]?.at as number) + 1)
      from = to
    }
  }
}

/** Returns the words of a token: a name such as `max_tokens` has several. */
function partsOf(word: string): string[] {
  return word
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((part) => part !== '')
}

/** Joins what is kept, with the marks between. */
function joined(tokens: readonly Token[], isKept: readonly boolean[]): string {
  let text = ''
  for (const [i, { before, word }] of tokens.entries()) {
    const between = before.replace(/\s+/g, ' ').slice(0, 4)
    const next = isKept[i] ? word : '…'
    if (next === '…' && text.endsWith('…')) continue
    if (text.length + between.length + next.length > MAX_KEPT) return text.endsWith('…') ? text : `${text} …`
    const mark = i === 0 || (isKept[i] && isKept[i - 1]) ? between : ' '
    text += (i === 0 ? mark.trimStart() : mark || ' ') + next
  }
  return text
}

/** Returns the letters and digits of a text, in one case: quoting changes the others. */
function condensed(text: string): string {
  return text.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '')
}

/** Members with words of the protocol. */
const ENVELOPE: ReadonlySet<string> = new Set(['role', 'type'])

/** Returns all texts of a request, and the names of members below its top level, which the caller may have chosen. */
function textsIn(json: JsonObject): string {
  const texts: string[] = []
  const walk = (value: unknown): void => {
    if (typeof value === 'string') texts.push(value)
    else if (typeof value === 'number') texts.push(String(value))
    else if (Array.isArray(value)) for (const item of value) walk(item)
    // The bytes of a file in a form are no text.
    else if (isJsonObject(value) && !ArrayBuffer.isView(value))
      for (const name in value) {
        if (!isErrorWord(name)) texts.push(name)
        if (!ENVELOPE.has(name)) walk(value[name])
      }
  }
  for (const name in json) if (name !== 'model') walk(json[name])
  return texts.join(' ')
}
