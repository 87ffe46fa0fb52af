import type { Prompt } from './prompt.ts'

const ECHO_CHARACTERS = 80
const MAX_WORDS = 5000

const SENTENCES = [
  'A gateway stands between one caller and many models, and picks the line each request takes.',
  'When a line fails before it has said anything, the next one may be asked instead.',
  'Once the first word is out, a request is never sent a second time.',
  'Every word you see here was counted, and the count is at the end of this answer.',
  'A circuit opens when a line fails too often, and closes again after a probe went well.',
  'Limits are kept per key and per account, by requests, by tokens and by calls at a time.',
  'The call log remembers which lines were tried and what each of them answered.',
  'Money is held back before a call and settled to the true cost when it ends.',
  'The same question always gets the same answer from me, which is handy in a test.',
  'Put a real provider into the config and sentences worth reading will stand here.',
] as const

/**
 * Writes the text of a demo model, the same for the same prompt and variant. The first sentence names the model, the second
 * repeats the prompt, all others are filler. If the prompt contains "300 words", the text has about that many, at most 5000,
 * so that you can choose how long a stream lasts.
 */
export function writeText(prompt: Prompt, variant: number): string {
  const sentences = [`This is ${prompt.model}, the demo model of the example gateway, and no real AI.`]
  if (prompt.toolResult === undefined) sentences.push(`You wrote: "${shorten(prompt.lastUserText)}".`)
  else sentences.push(`The tool answered: "${shorten(prompt.toolResult)}".`)
  if (prompt.system !== '') sentences.push(`My instructions are: "${shorten(prompt.system)}".`)

  const wanted = wordsAskedFor(prompt.lastUserText)
  const start = hash(prompt.lastUserText) + variant
  for (let i = 0; wanted === undefined ? i < 3 : countWords(sentences) < wanted; i++) {
    sentences.push(SENTENCES[(start + i) % SENTENCES.length] ?? SENTENCES[0])
  }
  return sentences.join(' ')
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  const characters = Array.from(line)
  return characters.length <= ECHO_CHARACTERS ? line : `${characters.slice(0, ECHO_CHARACTERS).join('')}…`
}

function wordsAskedFor(text: string): number | undefined {
  const digits = /(\d{1,6}) words/i.exec(text)?.[1]
  return digits === undefined ? undefined : Math.min(Number(digits), MAX_WORDS)
}

function countWords(sentences: readonly string[]): number {
  return sentences.reduce((words, sentence) => words + sentence.split(' ').length, 0)
}

function hash(text: string): number {
  let value = 7
  for (let i = 0; i < text.length; i++) value = (Math.imul(value, 31) + text.charCodeAt(i)) >>> 0
  return value
}
