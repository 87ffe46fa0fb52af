import { z } from 'zod'
import { isJsonObject } from '../../json/index.ts'
import { cacheControl, checkedAs, checkedWith, listOf, schemaNamed, texts } from '../body/body-schema.ts'
import { furtherModels } from '../body/further-models.ts'
import { providerConstraintSchema } from '../body/provider-constraint.ts'

const calledFunction = z.looseObject({
  name: z.string(),
  // Some callers keep the arguments parsed, or leave out those of a function that takes none.
  arguments: z.union([z.string(), z.looseObject({})], { error: 'must be a string' }).nullish(),
})

const PARTS: Readonly<Record<string, z.ZodType>> = {
  text: z.looseObject({ text: z.string() }),
  refusal: z.looseObject({ refusal: z.string() }),
  // Mistral's clients send the URL itself.
  image_url: z.looseObject({
    image_url: z.union([z.looseObject({ url: z.string(), detail: z.string().nullish() }), z.string()]),
  }),
  input_audio: z.looseObject({ input_audio: z.looseObject({ data: z.string(), format: z.string() }) }),
  file: z.looseObject({
    file: z.looseObject({
      file_data: z.string().nullish(),
      file_id: z.string().nullish(),
      filename: z.string().nullish(),
    }),
  }),
  // Cursor sends these blocks of Anthropic's.
  tool_use: z.looseObject({ id: z.string(), name: z.string() }),
  tool_result: z.looseObject({ tool_use_id: z.string(), is_error: z.boolean().nullish() }),
}

const part = checkedAs(
  z.looseObject({
    type: z.string(),
    text: z.string().nullish(),
    image_url: z.union([z.looseObject({ url: z.string() }), z.string()]).nullish(),
    cache_control: cacheControl,
  }),
  ({ type }) => schemaNamed(PARTS, type),
)

const NO_CONTENT = { error: 'must be a string or a list of content parts' }
const content = z.union([z.string(), listOf(part)], NO_CONTENT)

/** Content that is not absent. Its parts are checked with the message. */
const given = z.union([z.string(), z.custom(Array.isArray)], NO_CONTENT)

const CALLS: Readonly<Record<string, z.ZodType>> = {
  function: z.looseObject({ function: calledFunction }),
  custom: z.looseObject({ custom: z.looseObject({ name: z.string(), input: z.string() }) }),
}

const toolCall = checkedAs(z.looseObject({ id: z.string(), type: z.string() }), ({ type }) =>
  schemaNamed(CALLS, type),
)

/** The members that a message needs besides its role. */
const MESSAGES: Readonly<Record<string, z.ZodType>> = {
  developer: z.looseObject({ content: given }),
  system: z.looseObject({ content: given }),
  user: z.looseObject({ content: given }),
  tool: z.looseObject({ content: given, tool_call_id: z.string() }),
  function: z.looseObject({ content: given.nullable(), name: z.string() }),
  assistant: z.looseObject({
    refusal: z.string().nullish(),
    audio: z.looseObject({ id: z.string() }).nullish(),
    function_call: calledFunction.nullish(),
    reasoning: z.string().nullish(),
    reasoning_content: z.string().nullish(),
    reasoning_details: z.array(z.looseObject({})).nullish(),
  }),
}

const message = checkedAs(
  z.looseObject({
    role: z.enum(['developer', 'system', 'user', 'assistant', 'tool', 'function']),
    content: content.nullish(),
    name: z.string().nullish(),
    tool_calls: listOf(toolCall).nullish(),
    cache_control: cacheControl,
  }),
  ({ role }) => MESSAGES[role],
)

const definedFunction = z.looseObject({
  name: z.string(),
  description: z.string().nullish(),
  parameters: z.looseObject({}).nullish(),
  strict: z.boolean().nullish(),
})

const TOOLS: Readonly<Record<string, z.ZodType>> = {
  function: z.looseObject({ function: definedFunction }),
  custom: z.looseObject({ custom: z.looseObject({ name: z.string(), description: z.string().nullish() }) }),
}

/** Cursor's tools for Claude are Anthropic's, which have no type. */
const untypedTool = z.looseObject({ name: z.string(), description: z.string().nullish() })

const tool = checkedAs(
  z
    .looseObject({ type: z.string().optional(), cache_control: cacheControl })
    .refine(({ type, input_schema }) => type !== undefined || isJsonObject(input_schema), {
      path: ['type'],
      error: 'is missing',
    }),
  ({ type }) => (type === undefined ? untypedTool : schemaNamed(TOOLS, type)),
)

const named = z.looseObject({ name: z.string() })

/** Cursor sends a word such as `auto` as the type of an object. */
const CHOICES: Readonly<Record<string, z.ZodType>> = {
  function: z.looseObject({ function: named }),
  custom: z.looseObject({ custom: named }),
  allowed_tools: z.looseObject({
    allowed_tools: z.looseObject({ mode: z.string(), tools: z.array(z.looseObject({})) }),
  }),
}

const toolChoice = checkedAs(
  z.union([z.string(), z.looseObject({ type: z.string() })], { error: 'must be a string or an object' }),
  (choice) => (typeof choice === 'string' ? undefined : schemaNamed(CHOICES, choice.type)),
)

const withJsonSchema = z.looseObject({
  json_schema: z.looseObject({
    name: z.string(),
    description: z.string().nullish(),
    schema: z.looseObject({}).nullish(),
    strict: z.boolean().nullish(),
  }),
})

/** Together, Fireworks and others have the schema in the format itself. */
const responseFormat = checkedAs(z.looseObject({ type: z.string() }), ({ type, schema }) =>
  type === 'json_schema' && !isJsonObject(schema) ? withJsonSchema : undefined,
)

/** Members that are passed on or translated, and that the gateway does not judge a request by. */
const passedOn = z.looseObject({
  system: content.nullish(),
  top_k: z.number().nullish(),
  stop: z.union([z.string(), texts], { error: 'must be a string or a list of strings' }).nullish(),
  seed: z.number().nullish(),
  frequency_penalty: z.number().nullish(),
  presence_penalty: z.number().nullish(),
  logit_bias: z.looseObject({}).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().nullish(),
  modalities: texts.nullish(),
  audio: z.looseObject({}).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  function_call: z.union([z.string(), named], { error: 'must be a string or an object' }).nullish(),
  verbosity: z.string().nullish(),
  web_search_options: z.looseObject({}).nullish(),
  user: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  service_tier: z.string().nullish(),
  store: z.boolean().nullish(),
  metadata: z.looseObject({}).nullish(),
})

/** The members of a chat completion request that the gateway reads; unknown members pass through unchanged. */
const judged = z.looseObject({
  model: z.string().min(1),
  models: furtherModels.nullish(),
  messages: listOf(message, 1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.int().min(1).max(128).nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  tools: listOf(tool).nullish(),
  functions: listOf(definedFunction).nullish(),
  response_format: responseFormat.nullish(),
  reasoning_effort: z.string().nullish(),
  prediction: z.unknown().optional(),
  provider: providerConstraintSchema.nullish(),
})

export const chatSchema = checkedWith(judged, passedOn)

export type ChatBody = z.output<typeof judged>
