import { serviceTierOf } from '../../catalog/service-tier.ts'
import { isJsonObject, isText, type JsonObject, objectsIn, tokenCount } from '../../json/index.ts'
import {
  explainsNoOutput,
  type FinishReason,
  finishReasonOf,
  interruptionOf,
  isModerated,
} from '../finish-reasons.ts'
import { SpeechCount, sealedTokens, TOKENS_PER_MADE_IMAGE } from '../metering/output-tokens.ts'
import { estimateTokens, jsonText } from '../metering/token-estimate.ts'
import { searchesInUsage } from '../metering/web-searches.ts'
import type { AnswerReading, ReportedUsage, ResourceName, Substance } from '../operation.ts'

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
  readonly finishReason: FinishReason | undefined
  readonly #choices: readonly ChatChoice[]
  readonly #form: ChoiceForm

  constructor(choices: readonly ChatChoice[], usage: ReportedUsage, form: ChoiceForm) {
    this.usage = usage
    this.#choices = choices
    this.#form = form
    let substance: Substance = 'empty'
    let finishReason: FinishReason | undefined
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
      this.error ??= interruptionOf(choice.finish_reason, choice.error)
      finishReason = firstIncomplete(finishReason, choice.finish_reason)
    }
    this.substance = substance
    this.finishReason = finishReason
  }

  get kept(): readonly ResourceName[] {
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

/** Returns why an answer of several choices ended. */
export function firstIncomplete(before: FinishReason | undefined, reason: unknown): FinishReason | undefined {
  return before === undefined || before === 'stop' ? (finishReasonOf(reason) ?? before) : before
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

/** Whether usage has details. Then the parts may not add up to the total. */
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
export function keptOf({ audio }: ChatOutput): readonly ResourceName[] {
  return isJsonObject(audio) && typeof audio.id === 'string' ? [{ kind: 'audio', id: audio.id }] : NONE
}

const NONE: readonly ResourceName[] = []

const isFilled = (value: unknown): boolean => Array.isArray(value) && value.length > 0
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** The members of a message or delta that contain output, by the names of all upstreams. */
export interface ChatOutput {
  content?: unknown
  reasoning_content?: unknown
  reasoning?: unknown
  reasoning_details?: unknown
  refusal?: unknown
  tool_calls?: unknown
  function_call?: unknown
  audio?: unknown
  images?: unknown
}

/** Returns the text of a message or delta that is counted as output. */
export function outputText(output: ChatOutput): string {
  let text = ''
  for (const value of [output.content, reasoningOf(output), output.refusal]) {
    if (typeof value === 'string') text += value
  }
  if (Array.isArray(output.content)) for (const item of output.content) text += partText(item)
  if (Array.isArray(output.tool_calls)) {
    for (const call of output.tool_calls as { function?: unknown; custom?: unknown }[]) {
      text += callText(call?.function ?? call?.custom)
    }
  }
  return text + callText(output.function_call)
}

/** Returns what was thought. Some upstreams say it in one member, some in a list, and hosted routers in both. */
function reasoningOf({
  reasoning_content: content,
  reasoning,
  reasoning_details: details,
}: ChatOutput): unknown {
  if (isText(content)) return content
  if (isText(reasoning) || !Array.isArray(details)) return reasoning
  return objectsIn(details).reduce(
    (all, detail) => all + textIn(detail, 'text') + textIn(detail, 'summary'),
    '',
  )
}

/** Returns the name and the input of a call of a function or of a custom tool. */
function callText(call: unknown): string {
  if (!isJsonObject(call)) return ''
  return textIn(call, 'name') + jsonText(call.arguments ?? call.input)
}

/** Returns the text of a content part, and what was thought in it, which some upstreams say in parts of a part. */
function partText(part: unknown): string {
  if (!isJsonObject(part)) return ''
  let text = textIn(part, 'text') + textIn(part, 'refusal') + textIn(part, 'thinking')
  for (const thoughts of [part.thinking, part.summary])
    for (const item of objectsIn(thoughts)) text += textIn(item, 'text')
  return text
}

/**
 * Returns the tokens of what a message or delta has besides its text: images, and what its text does not show of sealed
 * reasoning.
 *
 * @param shown the reasoning that the earlier deltas have shown, which the sealed reasoning does not repeat.
 */
export function textlessTokens(output: ChatOutput, shown = { tokens: 0 }): number {
  const { content, images, reasoning_details: details } = output
  const inContent = Array.isArray(content)
    ? objectsIn(content).filter(({ type }) => IMAGES.has(type)).length
    : 0
  const made = (inContent + (Array.isArray(images) ? images.length : 0)) * TOKENS_PER_MADE_IMAGE
  if (!details) return made
  const sealed = objectsIn(details).reduce((all, { data }) => all + sealedTokens(data), 0)
  shown.tokens += estimateTokens(jsonText(reasoningOf(output)))
  const hidden = Math.max(0, sealed - shown.tokens)
  shown.tokens -= sealed - hidden
  return made + hidden
}

const IMAGES: ReadonlySet<unknown> = new Set(['image_url', 'image', 'output_image'])

function textIn(value: JsonObject, member: string): string {
  const text = value[member]
  return typeof text === 'string' ? text : ''
}
