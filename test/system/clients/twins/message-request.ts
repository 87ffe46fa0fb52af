import { z } from 'zod'
import { bareSchema, membersOf, mustCompile } from './schemas.ts'
import { fileOf, type Heard, isAboutFile, must, pairedResults, sealOf } from './script.ts'

const cache_control = z
  .strictObject({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).optional() })
  .nullish()
const source = z.strictObject({ type: z.literal('base64'), media_type: z.string(), data: z.string() })
const text = z.strictObject({
  type: z.literal('text'),
  text: z.string().min(1),
  citations: z.null().optional(),
  cache_control,
})
const image = z.strictObject({ type: z.literal('image'), source, cache_control })
const document = z.strictObject({
  type: z.literal('document'),
  source,
  title: z.string().nullish(),
  context: z.string().nullish(),
  citations: z.strictObject({ enabled: z.boolean() }).nullish(),
  cache_control,
})
const part = z.discriminatedUnion('type', [text, image, document])
const result = z.strictObject({
  type: z.literal('tool_result'),
  tool_use_id: z.string(),
  content: z.union([z.string(), z.array(part)]).optional(),
  is_error: z.boolean().nullish(),
  cache_control,
})
const thinking = z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() })
const use = z.strictObject({
  type: z.literal('tool_use'),
  id: z.string().regex(/^[a-zA-Z0-9_-]+$/),
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/),
  input: z.record(z.string(), z.unknown()),
  caller: z.strictObject({ type: z.literal('direct') }).optional(),
  cache_control,
})
const effort = z.enum(['low', 'medium', 'high', 'xhigh', 'max'])
const turn = z.discriminatedUnion('role', [
  z.strictObject({
    role: z.literal('user'),
    content: z.union([
      z.string().min(1),
      z.array(z.discriminatedUnion('type', [text, image, document, result])).min(1),
    ]),
  }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.union([
      z.string().min(1),
      z.array(z.discriminatedUnion('type', [text, thinking, use])).min(1),
    ]),
  }),
  z.strictObject({
    role: z.literal('system'),
    content: z.union([z.string().min(1), z.array(text).min(1)]),
    output_config: z.strictObject({ effort }).optional(),
  }),
])
type Turn = z.infer<typeof turn>
type Result = z.infer<typeof result>

const custom = z.strictObject({
  type: z.literal('custom').optional(),
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/),
  description: z.string().optional(),
  input_schema: bareSchema,
  strict: z.boolean().optional(),
  defer_loading: z.boolean().optional(),
  eager_input_streaming: z.boolean().optional(),
  cache_control,
})
const search = z.strictObject({ type: z.literal('web_search_20250305'), name: z.literal('web_search') })
const choice = { disable_parallel_tool_use: z.boolean().optional() }

/** The members that Anthropic's messages accept, of those that these clients could send. */
const request = z.strictObject({
  model: z.string(),
  max_tokens: z.int().min(1),
  messages: z.array(turn).min(1),
  system: z.union([z.string(), z.array(text)]).optional(),
  stream: z.boolean().optional(),
  temperature: z.number().min(0).max(1).optional(),
  top_p: z.number().optional(),
  top_k: z.int().optional(),
  stop_sequences: z.array(z.string()).optional(),
  tools: z.array(z.union([search, custom])).optional(),
  tool_choice: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.enum(['auto', 'any']), ...choice }),
      z.strictObject({ type: z.literal('none') }),
      z.strictObject({ type: z.literal('tool'), name: z.string(), ...choice }),
    ])
    .optional(),
  thinking: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.literal('disabled') }),
      z.strictObject({ type: z.literal('adaptive'), display: z.enum(['omitted', 'summarized']).optional() }),
      z.strictObject({
        type: z.literal('enabled'),
        budget_tokens: z.int().min(1024),
        display: z.enum(['omitted', 'summarized']).optional(),
      }),
    ])
    .optional(),
  output_config: z
    .strictObject({
      effort: effort.optional(),
      format: z.strictObject({ type: z.literal('json_schema'), schema: bareSchema }).nullish(),
    })
    .optional(),
  context_management: z
    .strictObject({
      edits: z.array(z.strictObject({ type: z.literal('clear_thinking_20251015'), keep: z.literal('all') })),
    })
    .optional(),
  metadata: z.strictObject({ user_id: z.string().max(256).nullish() }).optional(),
  cache_control,
  service_tier: z.enum(['auto', 'standard_only']).optional(),
})
export type MessageRequest = z.infer<typeof request>

/** Reads a request as strictly as the provider; throws a refusal. */
export function readMessages(body: unknown): MessageRequest & { heard: Heard } {
  const { data, error } = request.safeParse(body)
  const [issue] = error?.issues ?? []
  must(data, `${issue?.path.join('.')}: ${issue?.message}`)
  const { messages, thinking: thinks, tool_choice: chosen } = data
  const tools = (data.tools ?? []).flatMap((one) => ('input_schema' in one ? [one] : []))
  const on = thinks !== undefined && thinks.type !== 'disabled'
  if (thinks?.type === 'enabled') {
    must(
      data.max_tokens > thinks.budget_tokens,
      '`max_tokens` must be greater than `thinking.budget_tokens`.',
    )
    must(
      chosen?.type !== 'any' && chosen?.type !== 'tool',
      'Thinking may not be enabled when tool_choice forces tool use.',
    )
  }
  if (on)
    must(
      data.temperature === undefined || data.temperature === 1,
      '`temperature` may only be set to 1 with thinking.',
    )
  must(
    data.temperature === undefined || data.top_p === undefined,
    '`temperature` and `top_p` cannot both be specified.',
  )
  const format = data.output_config?.format
  if (format) mustCompile(format.schema)
  for (const one of tools) if (one.strict) mustCompile(one.input_schema)
  checkThinking(messages, thinks?.type === 'enabled')
  const heard: Heard = {
    tools: tools.map(({ name, input_schema }) => ({ name, members: membersOf(input_schema) })),
    wantsForm: membersOf(format?.schema).includes('count'),
    thinks: on,
    files: filesOf(messages),
    thoughts: messages.filter((one) => blocksOf(one)[0]?.type === 'thinking').length,
    asksForFile: isAboutFile(body),
    results: resultsOf(messages),
  }
  return { ...data, heard }
}

/** Thinking comes back unchanged, and first in a turn that tools are answered to while a budget is thought with. */
function checkThinking(messages: readonly Turn[], byBudget: boolean): void {
  for (const { role, content } of messages) {
    if (role !== 'assistant' || typeof content === 'string') continue
    for (const block of content)
      if (block.type === 'thinking')
        must(block.signature === sealOf(block.thinking), 'Invalid `signature` in `thinking` block')
  }
  const last = messages.findLast(({ role }) => role === 'assistant')?.content
  if (!byBudget || !Array.isArray(last) || !isAnsweringTools(messages)) return
  must(
    last[0]?.type === 'thinking',
    `Expected \`thinking\` or \`redacted_thinking\`, but found \`${last[0]?.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`,
  )
}

const blocksOf = ({ content }: Turn) => (typeof content === 'string' ? [] : content)
const resultsIn = (turn: Turn | undefined): Result[] =>
  turn ? (blocksOf(turn) as Result[]).filter(({ type }) => type === 'tool_result') : []
const isAnsweringTools = (messages: readonly Turn[]) => resultsIn(messages.at(-1)).length > 0

/** Results are in the turn behind their calls, before anything else there, and complete. */
function resultsOf(messages: readonly Turn[]): readonly string[] {
  const all: string[] = []
  for (const [i, one] of messages.entries()) {
    const results = resultsIn(one)
    const before = messages[i - 1]
    if (results.length > 0) {
      must(
        before?.role === 'assistant',
        `messages.${i}: unexpected \`tool_use_id\` found in \`tool_result\` blocks`,
      )
      must(blocksOf(one)[0]?.type === 'tool_result', `messages.${i}: \`tool_result\` blocks must come first`)
    }
    if (one.role !== 'assistant') continue
    const uses = blocksOf(one).flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
    const answers = resultsIn(messages[i + 1]).map((two) => [two.tool_use_id, textOf(two)] as const)
    all.push(...pairedResults(uses, new Map(answers)))
  }
  return all
}

const textOf = ({ content = '' }: Result): string =>
  typeof content === 'string' ? content : content.map((one) => (one.type === 'text' ? one.text : '')).join('')

function filesOf(messages: readonly Turn[]): Heard['files'] {
  const last = messages.findLast(({ role }) => role !== 'system')
  if (last?.role !== 'user') return []
  const parts = blocksOf(last).flatMap((block) => {
    if (block.type !== 'tool_result') return [block]
    return typeof block.content === 'string' || !block.content ? [] : block.content
  })
  return parts.flatMap((one) =>
    one.type === 'image' || one.type === 'document' ? [fileOf(one.source.media_type, one.source.data)] : [],
  )
}
