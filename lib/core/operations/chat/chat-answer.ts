import { isJsonObject, type JsonObject, tokenCount } from '../../json/index.ts'
import type { AnswerReading, KeptName, ReportedUsage, Substance } from '../operation.ts'
import { isExpectedSilence } from '../silence.ts'
import { estimateTokens } from '../tokens/token-estimate.ts'

/** The members of a message or delta that contain output, by the names of all upstreams. */
export interface ChatOutput {
  content?: unknown
  reasoning_content?: unknown
  reasoning?: unknown
  refusal?: unknown
  tool_calls?: unknown
  function_call?: unknown
  audio?: unknown
  images?: unknown
}

/** A choice of an answer or of a chunk. */
export interface ChatChoice {
  readonly index?: unknown
  readonly message?: ChatOutput | null
  readonly delta?: ChatOutput | null
  readonly finish_reason?: unknown
  /** Some upstreams name the stop sequence here. */
  readonly stop_reason?: unknown
  readonly error?: unknown
  readonly [member: string]: unknown
}

/** How to read the output of a choice. */
export interface ChoiceForm {
  output(choice: ChatChoice): ChatOutput
  /** Returns the member with a chunk's text if the choice contains nothing else of interest. */
  textMember(choice: ChatChoice): string | undefined
}

const MESSAGE_CHOICE: ChoiceForm = { output: ({ message }) => message ?? {}, textMember: () => undefined }

/**
 * Reads a complete answer with choices. Throws SyntaxError if it is not one.
 *
 * @param request the body that it answers.
 * @param form how to read a choice. Defaults to that of a chat completion.
 */
export function readChoices(
  json: unknown,
  request: Readonly<Record<string, unknown>> = {},
  form: ChoiceForm = MESSAGE_CHOICE,
): AnswerReading {
  const answer = json as { choices?: unknown; usage?: unknown } | null
  if (typeof answer !== 'object' || answer === null || !Array.isArray(answer.choices)) {
    throw new SyntaxError('the answer has no "choices"')
  }
  const reading = new ChoicesReading(answer.choices, readChatUsage(answer.usage), form)
  if (
    reading.substance === 'empty' &&
    answer.choices.some((choice) => isSilent(choice, answer.usage, request))
  )
    reading.substance = 'silent'
  return reading
}

/** Whether there is a reason for a choice without output. */
export function isSilent(
  choice: ChatChoice | null,
  usage: unknown,
  request: Readonly<Record<string, unknown>>,
): boolean {
  if (!isObject(choice)) return false
  const { finish_reason: stopReason, stop_reason: sequence } = choice
  if (typeof sequence === 'string' || typeof sequence === 'number') return true
  return isExpectedSilence({ stopReason, usage }, request)
}

class ChoicesReading implements AnswerReading {
  readonly usage: ReportedUsage
  substance: Substance
  readonly error: unknown
  readonly #choices: readonly ChatChoice[]
  readonly #form: ChoiceForm

  constructor(choices: readonly ChatChoice[], usage: ReportedUsage, form: ChoiceForm) {
    this.usage = usage
    this.#choices = choices
    this.#form = form
    let substance: Substance = 'empty'
    for (let i = 0; i < choices.length; i++) {
      const choice = choices[i]
      // An upstream can send anything.
      if (typeof choice !== 'object' || choice === null) continue
      substance = weightier(substance, choice, form)
      // The answer broke off behind the upstream.
      if (choice.finish_reason === 'error') this.error ??= choice.error ?? {}
    }
    this.substance = substance
  }

  get kept(): readonly KeptName[] {
    return this.#choices.flatMap((choice) => (isObject(choice) ? keptOf(this.#form.output(choice)) : []))
  }

  estimateOutput(): number {
    let tokens = 0
    for (const choice of this.#choices) {
      if (isObject(choice)) tokens += estimateTokens(outputText(this.#form.output(choice)))
    }
    return tokens
  }
}

/** Combines the substance so far with one more choice: a refusal wins over output, output over filtered output. */
function weightier(before: Substance, choice: ChatChoice, form: ChoiceForm): Substance {
  if (before === 'refusal') return before
  const output = form.output(choice)
  if (isText(output.refusal)) return 'refusal'
  if (before === 'output' || hasOutput(output)) return 'output'
  return choice.finish_reason === 'content_filter' ? 'filtered' : before
}

/** Reads OpenAI-style `usage`. `prompt_tokens` includes cached tokens, the output includes reasoning. */
export function readChatUsage(usage: unknown): ReportedUsage {
  if (!isJsonObject(usage)) return {}
  const cache = isJsonObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : {}
  return {
    inputTokens: tokenCount(usage.prompt_tokens),
    outputTokens: outputOf(usage),
    cachedInputTokens: tokenCount(cache.cached_tokens) ?? tokenCount(usage.prompt_cache_hit_tokens),
    cacheWriteTokens: tokenCount(cache.cache_write_tokens),
  }
}

/**
 * Returns the output tokens. Most upstreams include reasoning in `completion_tokens`; xAI does not. The total shows
 * which, or that there are more reasoning tokens than completion tokens.
 */
function outputOf(usage: JsonObject): number | undefined {
  const completion = tokenCount(usage.completion_tokens)
  const details = isJsonObject(usage.completion_tokens_details) ? usage.completion_tokens_details : {}
  const reasoning = tokenCount(details.reasoning_tokens)
  if (completion === undefined || reasoning === undefined) return completion
  const apart = completion + reasoning
  const total = tokenCount(usage.total_tokens)
  const prompt = tokenCount(usage.prompt_tokens) ?? 0
  return reasoning > completion || (total !== undefined && total >= prompt + apart) ? apart : completion
}

/** Whether a message or delta contains a refusal by the model. */
export function hasRefusal(output: ChatOutput): boolean {
  return isText(output.refusal)
}

/** Whether a message or delta contains output: text, reasoning, a refusal, a tool call, audio or an image. */
export function hasOutput(output: ChatOutput): boolean {
  return (
    isText(output.content) ||
    isText(output.reasoning_content) ||
    isText(output.reasoning) ||
    isText(output.refusal) ||
    isFilled(output.content) ||
    isFilled(output.tool_calls) ||
    isFilled(output.images) ||
    isObject(output.function_call) ||
    isObject(output.audio)
  )
}

/** Returns the spoken answer of a message or delta, which later turns can name. */
export function keptOf({ audio }: ChatOutput): readonly KeptName[] {
  return isJsonObject(audio) && typeof audio.id === 'string' ? [{ kind: 'audio', id: audio.id }] : NONE
}

const NONE: readonly KeptName[] = []

/** Returns the text of a message or delta that is counted as output. */
export function outputText(output: ChatOutput): string {
  let text = ''
  for (const value of [output.content, output.reasoning_content ?? output.reasoning, output.refusal]) {
    if (typeof value === 'string') text += value
  }
  if (Array.isArray(output.content)) for (const item of output.content) text += textIn(item, 'text')
  if (Array.isArray(output.tool_calls)) {
    for (const call of output.tool_calls as { function?: unknown }[]) {
      text += textIn(call?.function, 'name') + textIn(call?.function, 'arguments')
    }
  }
  return text + textIn(output.function_call, 'name') + textIn(output.function_call, 'arguments')
}

function textIn(value: unknown, member: string): string {
  const text = isObject(value) ? (value as Record<string, unknown>)[member] : undefined
  return typeof text === 'string' ? text : ''
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isFilled = (value: unknown): boolean => Array.isArray(value) && value.length > 0
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
