import { serviceTierOf } from '../../catalog/service-tier.ts'
import { isJsonObject, isText, type JsonObject, tokenCount } from '../../json/index.ts'
import { explainsNoOutput, isModerated } from '../no-output.ts'
import type { AnswerReading, KeptName, ReportedUsage, Substance } from '../operation.ts'
import { SpeechCount } from '../tokens/made-media.ts'
import { estimateTokens } from '../tokens/token-estimate.ts'
import { searchesInUsage } from '../web-searches.ts'
import { type ChatOutput, outputText, textlessTokens } from './chat-output.ts'

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
 * @param request the caller's body.
 * @param form how to read a choice. Defaults to that of a chat completion.
 */
export function readChoices(
  json: unknown,
  request: Readonly<Record<string, unknown>> = {},
  form: ChoiceForm = MESSAGE_CHOICE,
): AnswerReading {
  const answer = json as { choices?: unknown; usage?: unknown; service_tier?: unknown } | null
  if (typeof answer !== 'object' || answer === null || !Array.isArray(answer.choices)) {
    throw new SyntaxError('the answer has no "choices"')
  }
  const usage = answer.usage ?? usageIn(answer.choices)
  const reading = new ChoicesReading(answer.choices, readChatUsage(usage), form)
  const tier = answer.service_tier ? serviceTierOf(answer.service_tier) : undefined
  if (tier || (tier === '' && usage === undefined)) reading.usage.serviceTier = tier
  if (
    reading.substance === 'empty' &&
    answer.choices.some((choice) => endsWithoutOutput(choice, usage, request))
  )
    reading.substance = 'no_output'
  return reading
}

/** Whether there is a reason for a choice without output. */
export function endsWithoutOutput(
  choice: ChatChoice | null,
  usage: unknown,
  request: Readonly<Record<string, unknown>>,
): boolean {
  if (!isObject(choice)) return false
  const { finish_reason: stopReason, stop_reason: sequence } = choice
  if (typeof sequence === 'string' || typeof sequence === 'number') return true
  return explainsNoOutput({ stopReason, usage }, request)
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
      // A refusal wins over output, output over filtered output.
      const output = form.output(choice)
      if (isText(output.refusal)) substance = 'refusal'
      else if (substance !== 'refusal') {
        if (hasOutput(output)) substance = 'output'
        else if (substance === 'empty' && isModerated(choice.finish_reason)) substance = 'filtered'
      }
      // The answer broke off behind the upstream.
      if (choice.finish_reason === 'error') this.error ??= choice.error ?? {}
    }
    this.substance = substance
  }

  get kept(): readonly KeptName[] {
    return this.#choices.flatMap((choice) => (isObject(choice) ? keptOf(this.#form.output(choice)) : []))
  }

  estimateOutput(): number {
    let tokens = this.estimateAudio()
    for (const choice of this.#choices) {
      if (!isObject(choice)) continue
      const output = this.#form.output(choice)
      tokens += estimateTokens(outputText(output)) + textlessTokens(output)
    }
    return tokens
  }

  estimateAudio(): number {
    let tokens = 0
    for (const choice of this.#choices) {
      if (isObject(choice)) tokens += new SpeechCount(estimateTokens).add(this.#form.output(choice).audio)
    }
    return tokens
  }
}

/** Returns the usage of choices that hold it themselves, as Kimi's last chunk does. */
export function usageIn(choices: readonly unknown[]): unknown {
  for (const choice of choices) if (isJsonObject(choice) && isJsonObject(choice.usage)) return choice.usage
  return undefined
}

const NO_DETAILS: JsonObject = {}

/** Reads OpenAI-style `usage`. `prompt_tokens` includes cached tokens, the output includes reasoning. */
export function readChatUsage(usage: unknown): ReportedUsage {
  if (!isJsonObject(usage)) return {}
  const input = isJsonObject(usage.prompt_tokens_details) ? usage.prompt_tokens_details : NO_DETAILS
  const output = isJsonObject(usage.completion_tokens_details) ? usage.completion_tokens_details : NO_DETAILS
  const reasoningTokens = tokenCount(output.reasoning_tokens)
  return {
    inputTokens: tokenCount(usage.prompt_tokens),
    outputTokens: outputOf(usage, reasoningTokens),
    cachedInputTokens:
      tokenCount(input.cached_tokens) ??
      tokenCount(usage.prompt_cache_hit_tokens) ??
      tokenCount(usage.cached_tokens),
    // Qwen has Anthropic's name for it.
    cacheWriteTokens: tokenCount(input.cache_write_tokens) ?? tokenCount(input.cache_creation_input_tokens),
    audioInputTokens: tokenCount(input.audio_tokens),
    audioOutputTokens: tokenCount(output.audio_tokens),
    reasoningTokens,
    // OpenRouter has Anthropic's name for it.
    webSearches: usage.server_tool_use ? searchesInUsage(usage) : undefined,
  }
}

/**
 * Returns the output tokens. Most upstreams include reasoning in `completion_tokens`; xAI does not. The total shows
 * which, or that there are more reasoning tokens than completion tokens. Google gives no details at all: thoughts are in
 * its total only.
 */
function outputOf(usage: JsonObject, reasoning: number | undefined): number | undefined {
  const completion = tokenCount(usage.completion_tokens)
  if (completion === undefined) return completion
  const total = tokenCount(usage.total_tokens) ?? 0
  const prompt = tokenCount(usage.prompt_tokens)
  if (reasoning === undefined)
    return prompt === undefined || hasDetails(usage) ? completion : Math.max(completion, total - prompt)
  const apart = completion + reasoning
  return reasoning > completion || total >= (prompt ?? 0) + apart ? apart : completion
}

/** Whether usage tells of its parts, which can be why they do not add up to the total. */
function hasDetails(usage: JsonObject): boolean {
  return isJsonObject(usage.prompt_tokens_details) || isJsonObject(usage.completion_tokens_details)
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
    hasParts(output.content) ||
    isFilled(output.tool_calls) ||
    isFilled(output.images) ||
    // Reasoning without words is encrypted.
    isFilled(output.reasoning_details) ||
    isObject(output.function_call) ||
    isObject(output.audio)
  )
}

/** Whether a list of content parts has more than empty texts. */
function hasParts(content: unknown): boolean {
  return Array.isArray(content) && content.some((part) => !isJsonObject(part) || part.text !== '')
}

/** Returns the spoken answer of a message or delta, which later turns can name. */
export function keptOf({ audio }: ChatOutput): readonly KeptName[] {
  return isJsonObject(audio) && typeof audio.id === 'string' ? [{ kind: 'audio', id: audio.id }] : NONE
}

const NONE: readonly KeptName[] = []

const isFilled = (value: unknown): boolean => Array.isArray(value) && value.length > 0
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
