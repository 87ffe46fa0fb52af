import { z } from 'zod'
import { checkedAs, checkedWith, listOf, schemaNamed, texts } from '../body/body-schema.ts'
import { furtherModels } from '../body/further-models.ts'
import { providerConstraintSchema } from '../body/provider-constraint.ts'

const text = z.looseObject({ text: z.string() })

const PARTS: Readonly<Record<string, z.ZodType>> = {
  input_text: text,
  output_text: text.extend({ annotations: z.array(z.looseObject({})).nullish() }),
  summary_text: text,
  reasoning_text: text,
  text,
  refusal: z.looseObject({ refusal: z.string() }),
  input_image: z
    .looseObject({
      image_url: z.string().nullish(),
      file_id: z.string().nullish(),
      detail: z.string().nullish(),
    })
    .refine(({ image_url: url, file_id: id }) => (url ?? id ?? null) !== null, {
      path: ['image_url'],
      error: 'is missing',
    }),
  input_file: z
    .looseObject({
      file_data: z.string().nullish(),
      file_id: z.string().nullish(),
      file_url: z.string().nullish(),
      filename: z.string().nullish(),
    })
    .refine(({ file_data: data, file_id: id, file_url: url }) => (data ?? id ?? url ?? null) !== null, {
      path: ['file_data'],
      error: 'is missing',
    }),
}

const part = checkedAs(z.looseObject({ type: z.string(), text: z.string().nullish() }), ({ type }) =>
  schemaNamed(PARTS, type),
)

/** Parts of a message, the output of a function call, or a screenshot. */
const NO_CONTENT = { error: 'must be a string or a list of content parts' }
const content = z.union([z.string(), listOf(part)], NO_CONTENT)

const ROLES = z.enum(['user', 'assistant', 'system', 'developer'])

const output = z.looseObject({ call_id: z.string(), output: content })

/** The members that an item of a type needs. */
const ITEMS: Readonly<Record<string, z.ZodType>> = {
  // The parts of the content are checked with the item.
  message: z.looseObject({
    role: ROLES,
    content: z.union([z.string(), z.custom(Array.isArray)], NO_CONTENT),
  }),
  function_call: z.looseObject({
    call_id: z.string(),
    name: z.string(),
    namespace: z.string().nullish(),
    // Some callers keep the arguments parsed, or leave out those of a function that takes none.
    arguments: z.union([z.string(), z.looseObject({})], { error: 'must be a string' }).nullish(),
  }),
  function_call_output: output,
  custom_tool_call: z.looseObject({ call_id: z.string(), name: z.string(), input: z.string() }),
  custom_tool_call_output: output,
  reasoning: z.looseObject({
    summary: listOf(part),
    content: listOf(part).nullish(),
    encrypted_content: z.string().nullish(),
  }),
  item_reference: z.looseObject({ id: z.string() }),
}

/** The members of an item without a type: it is a reference if it has an id only. */
const untypedItem = z
  .looseObject({})
  .refine(
    (item) => 'id' in item && !Object.keys(item).some((member) => member !== 'id' && member !== 'type'),
    {
      path: ['type'],
      error: 'is missing',
    },
  )

/** An item of the input. An item without a type is a message. */
const item = checkedAs(
  z.looseObject({
    type: z.string().nullish(),
    id: z.string().nullish(),
    role: ROLES.nullish(),
    content: content.nullish(),
    status: z.string().nullish(),
  }),
  (item) => {
    if ((item.type ?? undefined) !== undefined) return schemaNamed(ITEMS, item.type)
    return 'role' in item ? ITEMS.message : untypedItem
  },
)

const named = z.looseObject({ name: z.string() })

const definedFunction = named.extend({
  description: z.string().nullish(),
  parameters: z.looseObject({}).nullish(),
  strict: z.boolean().nullish(),
})

const OWN_TOOLS: Readonly<Record<string, z.ZodType>> = { function: definedFunction, custom: named }

const ownTool = checkedAs(z.looseObject({ type: z.string() }), ({ type }) => schemaNamed(OWN_TOOLS, type))

const TOOLS: Readonly<Record<string, z.ZodType>> = {
  ...OWN_TOOLS,
  namespace: named.extend({ description: z.string().nullish(), tools: listOf(ownTool) }),
}

const tool = checkedAs(z.looseObject({ type: z.string() }), ({ type }) => schemaNamed(TOOLS, type))

const CHOICES: Readonly<Record<string, z.ZodType>> = {
  function: named,
  custom: named,
  allowed_tools: z.looseObject({ mode: z.string(), tools: z.array(z.looseObject({})) }),
}

const toolChoice = checkedAs(
  z.union([z.string(), z.looseObject({ type: z.string() })], { error: 'must be a string or an object' }),
  (choice) => (typeof choice === 'string' ? undefined : schemaNamed(CHOICES, choice.type)),
)

const FORMATS = {
  json_schema: named.extend({
    schema: z.looseObject({}),
    description: z.string().nullish(),
    strict: z.boolean().nullish(),
  }),
}

const format = checkedAs(z.looseObject({ type: z.string() }), ({ type }) => schemaNamed(FORMATS, type))

/** Members that are passed on or translated, and that the gateway does not judge a request by. */
const passedOn = z.looseObject({
  stream_options: z.looseObject({}).nullish(),
  include: texts.nullish(),
  max_tool_calls: z.int().nullish(),
  top_logprobs: z.int().nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  user: z.string().nullish(),
  safety_identifier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  service_tier: z.string().nullish(),
  metadata: z.looseObject({}).nullish(),
})

/** The members of a response request that the gateway reads; unknown members pass through unchanged. */
const judged = z
  .looseObject({
    model: z.string().min(1),
    models: furtherModels.nullish(),
    input: z.union([z.string(), listOf(item)], { error: 'must be a string or a list of items' }).nullish(),
    instructions: z.union([z.string(), listOf(item)], { error: 'must be a string' }).nullish(),
    previous_response_id: z.string().min(1).max(1024).nullish(),
    stream: z.boolean().nullish(),
    store: z.boolean().nullish(),
    background: z.boolean().nullish(),
    conversation: z.unknown().optional(),
    prompt: z.unknown().optional(),
    prediction: z.unknown().optional(),
    max_output_tokens: z.int().min(1).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    tools: listOf(tool).nullish(),
    truncation: z.string().nullish(),
    text: z.looseObject({ format: format.nullish(), verbosity: z.string().nullish() }).nullish(),
    reasoning: z.looseObject({ effort: z.string().nullish(), summary: z.string().nullish() }).nullish(),
    provider: providerConstraintSchema.nullish(),
  })
  .refine(
    ({ input, previous_response_id: previous, conversation, prompt }) =>
      (input ?? previous ?? conversation ?? prompt) != null,
    { path: ['input'], error: 'is needed, or "previous_response_id", "conversation" or "prompt"' },
  )

export const responsesSchema = checkedWith(judged, passedOn)

export type ResponsesBody = z.output<typeof judged>

export type ResponsesItem = z.output<typeof item>
