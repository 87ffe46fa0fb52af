import { isJsonObject, type JsonObject } from '../json/index.ts'
import { type RequestContext, refuse } from './translation.ts'

const REASONING_MODEL = /(?:^|\/)(?:o\d|gpt-(?:[5-9]|\d\d))/

/**
 * Whether a model is one of OpenAI's reasoning models, by the upstream's name. These take `max_completion_tokens` in
 * place of `max_tokens`.
 */
export function isReasoningModel(upstreamModel: string): boolean {
  return REASONING_MODEL.test(upstreamModel)
}

/** Whether a model is one that OpenAI serves itself, by the upstream's name. */
export function isOpenAiModel(upstreamModel: string): boolean {
  return /(?:^|\/)(?:gpt-(?!oss)|o\d|chatgpt-|codex-)/.test(upstreamModel)
}

/** The only one of those that does not reason. It is not `gpt-5.3-chat`. */
const GPT_5_CHAT = /(?:^|\/)gpt-5-chat/

/** Whether a model accepts `temperature`, `top_p` and `stop`, by the upstream's name: OpenAI's do that do not reason. */
export function takesSampling(upstreamModel: string): boolean {
  return !isReasoningModel(upstreamModel) || GPT_5_CHAT.test(upstreamModel)
}

/**
 * Models that do not reason, and those of xAI that always reason alike: they refuse any `reasoning_effort`, Llama and Gemma
 * at Groq and in Ollama.
 */
const WITHOUT_EFFORT =
  /(?:^|\/)(?:chatgpt-|gpt-(?:3\.?5|4|\d[\d.]*-chat)|(?:meta-)?llama|mixtral|gemma-?[23](?!\d)|grok-(?:2|3(?!-mini)|4(?!\.(?:[3-9](?!\d)|20-multi))|code))/i

/** OpenAI's models that refuse functions in a chat while they reason. Some of them reason by default. */
const FUNCTIONS_OR_EFFORT = /^gpt-5\.(?:[4-9]|\d\d)(?!\d)/

const SINCE_5_2 = ['none', 'low', 'medium', 'high', 'xhigh'] as const

/** The efforts of models that refuse any other, from the least on. The first row that fits a model counts. */
const EFFORTS: readonly (readonly [model: RegExp, efforts: readonly string[]])[] = [
  [/(?:^|\/)o\d/, ['low', 'medium', 'high']],
  [/(?:^|\/)gpt-oss/, ['low', 'medium', 'high']],
  [/(?:^|\/)gpt-5-pro/, ['high']],
  [/(?:^|\/)gpt-5\.[2-5](?!\d)\S*-pro/, ['medium', 'high', 'xhigh']],
  [/(?:^|\/)gpt-5(?:\.1)?-codex(?!-max)/, ['low', 'medium', 'high']],
  [/(?:^|\/)gpt-5\.[1-5](?!\d)-codex/, ['low', 'medium', 'high', 'xhigh']],
  [/(?:^|\/)gpt-5(?![.\d])/, ['minimal', 'low', 'medium', 'high']],
  [/(?:^|\/)gpt-5\.1(?!\d)/, ['none', 'low', 'medium', 'high']],
  [/(?:^|\/)gpt-5\.[2-5](?!\d)/, SINCE_5_2],
  [/(?:^|\/)gpt-(?:[5-9]|\d\d)/, [...SINCE_5_2, 'max']],
  [/(?:^|\/)gemini-/, ['minimal', 'low', 'medium', 'high']],
]

/** Whether it is known which efforts a model takes, by the upstream's name. */
export function hasKnownEfforts(upstreamModel: string): boolean {
  return effortsOf(upstreamModel) !== undefined
}

function effortsOf(upstreamModel: string): readonly string[] | undefined {
  return EFFORTS.find(([model]) => model.test(upstreamModel))?.[1]
}

/** An effort that a request asks for. */
export interface AskedEffort {
  readonly effort: string
  /** The member that says so. */
  readonly param: string
}

/**
 * Returns the `reasoning_effort` for a model, by the upstream's name. An effort that the model lacks is left out; the least
 * that it has stands for `none` and `minimal`.
 *
 * @param asked the effort that was asked for.
 * @param hasFunctions whether the chat has functions.
 */
export function effortMember(
  { upstreamModel, leaveOut = refuse, report }: RequestContext,
  asked: AskedEffort | undefined,
  hasFunctions: boolean,
): {
  reasoning_effort?: string
} {
  const without = WITHOUT_EFFORT.test(upstreamModel)
  if (without || (hasFunctions && FUNCTIONS_OR_EFFORT.test(upstreamModel))) {
    if (asked && asked.effort !== 'none') report?.(asked.param)
    return without ? {} : { reasoning_effort: 'none' }
  }
  if (!asked) return {}
  const { effort, param } = asked
  const known = effortsOf(upstreamModel)
  if (!known || known.includes(effort)) return { reasoning_effort: effort }
  if (effort === 'none' || effort === 'minimal') {
    report?.(param)
    return { reasoning_effort: known[0] as string }
  }
  leaveOut(param, effortName(effort))
  return {}
}

/** Returns what a refusal calls an effort. */
export function effortName(effort: string): string {
  return `the effort ${JSON.stringify(effort.slice(0, MAX_NAME_LENGTH))}`
}

/** Longer names of efforts are cut in messages. */
const MAX_NAME_LENGTH = 64

/** Whether a model takes `verbosity`, by the upstream's name. */
export function takesVerbosity(upstreamModel: string): boolean {
  return /(?:^|\/)gpt-(?:[5-9]|\d\d)/.test(upstreamModel) && !WITHOUT_EFFORT.test(upstreamModel)
}

/** Returns `temperature` and `top_p` of a request, as far as it has them. */
export function samplingOf({ temperature, top_p: topP }: JsonObject): JsonObject {
  return {
    ...(typeof temperature === 'number' && { temperature }),
    ...(typeof topP === 'number' && { top_p: topP }),
  }
}

/** Most levels of a schema that are checked. */
const MAX_DEPTH = 100

/**
 * Whether OpenAI accepts a schema as strict: each object requires all its properties and allows no others. OpenAI refuses
 * any other schema with `strict`, Anthropic accepts it.
 */
export function isStrict(schema: unknown, depth = 0): boolean {
  if (depth > MAX_DEPTH) return false
  if (Array.isArray(schema)) return schema.every((item) => isStrict(item, depth + 1))
  if (!isJsonObject(schema)) return true
  const { properties, required } = schema
  if (schema.type === 'object' || isJsonObject(properties)) {
    const names = isJsonObject(properties) ? Object.keys(properties) : []
    const all: readonly unknown[] = Array.isArray(required) ? required : []
    // OpenAI refuses to require what is no property, too.
    if (schema.additionalProperties !== false || all.length !== names.length) return false
    const needed = new Set(all)
    if (!names.every((name) => needed.has(name))) return false
  }
  return Object.values(schema).every((value) => isStrict(value, depth + 1))
}
