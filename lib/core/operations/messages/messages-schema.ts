import { z } from 'zod'
import { cacheControl, checkedAs, checkedWith, listOf, schemaNamed, texts } from '../body/body-schema.ts'
import { providerConstraintSchema } from '../body/provider-constraint.ts'

const textBlock = z.looseObject({ type: z.literal('text'), text: z.string() })

/** A part of a document: a text or an image. */
const sourceBlock = checkedAs(z.looseObject({ type: z.string() }), ({ type }) =>
  type === 'text' ? textBlock : undefined,
)

const SOURCES: Readonly<Record<string, z.ZodType>> = {
  base64: z.looseObject({ data: z.string(), media_type: z.string() }),
  text: z.looseObject({ data: z.string(), media_type: z.string() }),
  content: z.looseObject({ content: z.union([z.string(), listOf(sourceBlock)]) }),
  url: z.looseObject({ url: z.string() }),
  file: z.looseObject({ file_id: z.string() }),
}

const source = checkedAs(z.looseObject({ type: z.string() }), ({ type }) => schemaNamed(SOURCES, type))

/** The members that a block of a type needs, in a message or in the result of a tool. */
const CONTENT_BLOCKS: Readonly<Record<string, z.ZodType>> = {
  text: z.looseObject({
    text: z.string(),
    citations: z.array(z.looseObject({ type: z.string() })).nullish(),
  }),
  image: z.looseObject({ source }),
  document: z.looseObject({
    source,
    title: z.string().nullish(),
    context: z.string().nullish(),
    citations: z.looseObject({ enabled: z.boolean().nullish() }).nullish(),
  }),
  search_result: z.looseObject({
    source: z.string(),
    title: z.string(),
    content: listOf(textBlock),
  }),
  tool_reference: z.looseObject({ tool_name: z.string() }),
}

const baseBlock = z.looseObject({
  type: z.string(),
  text: z.string().nullish(),
  cache_control: cacheControl,
})

const innerBlock = checkedAs(baseBlock, ({ type }) => schemaNamed(CONTENT_BLOCKS, type))

const usedTool = z.looseObject({
  id: z.string(),
  name: z.string(),
  // Some callers keep the input as text, or leave out that of a tool that takes none.
  input: z.union([z.looseObject({}), z.string()], { error: 'must be an object' }).nullish(),
})

const BLOCKS: Readonly<Record<string, z.ZodType>> = {
  ...CONTENT_BLOCKS,
  thinking: z.looseObject({ thinking: z.string(), signature: z.string() }),
  redacted_thinking: z.looseObject({ data: z.string() }),
  tool_use: usedTool,
  server_tool_use: usedTool,
  tool_result: z.looseObject({
    tool_use_id: z.string(),
    is_error: z.boolean().nullish(),
    content: z
      .union([z.string(), listOf(innerBlock)], { error: 'must be a string or a list of content blocks' })
      .nullish(),
  }),
  web_search_tool_result: z.looseObject({
    tool_use_id: z.string(),
    content: z.union([z.array(z.looseObject({})), z.looseObject({})]),
  }),
}

const block = checkedAs(baseBlock, ({ type }) => schemaNamed(BLOCKS, type))
const content = z.union([z.string(), listOf(block)], {
  error: 'must be a string or a list of content blocks',
})

/** A tool that the caller runs. */
const ownTool = z.looseObject({
  name: z.string(),
  description: z.string().nullish(),
  input_schema: z.looseObject({}),
  strict: z.boolean().nullish(),
})

const tool = checkedAs(
  z.looseObject({ type: z.string().nullish(), cache_control: cacheControl }),
  ({ type }) => ((type ?? 'custom') === 'custom' ? ownTool : undefined),
)

const CHOICES = { tool: z.looseObject({ name: z.string() }) }

const toolChoice = checkedAs(
  z.looseObject({ type: z.string(), disable_parallel_tool_use: z.boolean().nullish() }),
  ({ type }) => schemaNamed(CHOICES, type),
)

const THINKING = { enabled: z.looseObject({ budget_tokens: z.int() }) }

const thinking = checkedAs(z.looseObject({ type: z.string() }), ({ type }) => schemaNamed(THINKING, type))

const FORMATS = { json_schema: z.looseObject({ schema: z.looseObject({}) }) }

const outputFormat = checkedAs(z.looseObject({ type: z.string() }), ({ type }) => schemaNamed(FORMATS, type))

/** Members that are passed on or translated, and that the gateway does not judge a request by. */
const passedOn = z.looseObject({
  top_k: z.number().nullish(),
  stop_sequences: texts.nullish(),
  tool_choice: toolChoice.nullish(),
  output_format: outputFormat.nullish(),
  metadata: z.looseObject({ user_id: z.string().nullish() }).nullish(),
  service_tier: z.string().nullish(),
  cache_control: cacheControl,
})

/** The members of a message request that the gateway reads; unknown members pass through unchanged. */
const judged = z.looseObject({
  model: z.string().min(1),
  // 0 fills the prompt cache and asks for no answer.
  max_tokens: z.int().min(0),
  messages: listOf(z.looseObject({ role: z.enum(['user', 'assistant', 'system']), content }), 1),
  system: content.nullish(),
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  tools: listOf(tool).nullish(),
  thinking: thinking.nullish(),
  output_config: z.looseObject({ format: outputFormat.nullish(), effort: z.string().nullish() }).nullish(),
  provider: providerConstraintSchema.nullish(),
})

export const messageSchema = checkedWith(judged, passedOn)

/** A message request of which only the input matters. */
export const inputSchema = checkedWith(judged.extend({ max_tokens: z.int().min(0).nullish() }), passedOn)

export type MessagesBody = z.output<typeof judged>
export type Block = z.output<typeof block>
