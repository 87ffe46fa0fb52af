import { z } from 'zod'
import { bareSchema, membersOf } from './schemas.ts'
import { fileOfDataUrl, type Heard, isAboutFile, isThought, must, pairedResults, sealOf } from './script.ts'

const id = z.string().nullish()
const status = z.enum(['in_progress', 'completed', 'incomplete']).optional()
const inputPart = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('input_text'), text: z.string() }),
  z.strictObject({
    type: z.literal('input_image'),
    image_url: z.string(),
    detail: z.enum(['auto', 'low', 'high', 'original']).optional(),
  }),
  z.strictObject({ type: z.literal('input_file'), filename: z.string().optional(), file_data: z.string() }),
])
const outputPart = z.strictObject({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(z.never()).optional(),
  logprobs: z.array(z.never()).optional(),
})
const message = z.strictObject({
  type: z.literal('message').optional(),
  role: z.enum(['system', 'developer', 'user']),
  content: z.union([z.string(), z.array(inputPart).min(1)]),
  id,
  status,
})
const answer = z.strictObject({
  type: z.literal('message').optional(),
  role: z.literal('assistant'),
  content: z.union([z.string(), z.array(outputPart).min(1)]),
  id,
  status,
  phase: z.null().optional(),
})
const reasoning = z.strictObject({
  type: z.literal('reasoning'),
  id: z.string(),
  summary: z.array(z.strictObject({ type: z.literal('summary_text'), text: z.string() })),
  content: z.null().optional(),
  encrypted_content: z.string().nullish(),
  status: status.nullable(),
})
const call = z.strictObject({
  type: z.literal('function_call'),
  call_id: z.string().max(64),
  name: z.string().regex(/^[\w-]{1,64}$/),
  arguments: z.string(),
  namespace: z.string().optional(),
  id,
  status,
})
const output = z.strictObject({
  type: z.literal('function_call_output'),
  call_id: z.string(),
  output: z.union([z.string(), z.array(inputPart)]),
  id,
  status: status.nullable(),
})
const reference = z.strictObject({ type: z.literal('item_reference'), id: z.string() })
const item = z.union([reasoning, call, output, reference, message, answer])
export type Item = z.infer<typeof item>

const functionTool = z.strictObject({
  type: z.literal('function'),
  name: z.string().regex(/^[\w-]{1,64}$/),
  description: z.string().nullish(),
  parameters: bareSchema.nullish(),
  strict: z.boolean().nullish(),
})
const tool = z.discriminatedUnion('type', [
  functionTool,
  z.strictObject({
    type: z.literal('namespace'),
    name: z.string(),
    description: z.string(),
    tools: z.array(functionTool).min(1),
  }),
  z.strictObject({ type: z.literal('web_search'), external_web_access: z.boolean().optional() }),
])

/** The members that OpenAI's responses accept, of those that these clients could send. */
const request = z.strictObject({
  model: z.string(),
  input: z.union([z.string(), z.array(item).min(1)]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.strictObject({ include_obfuscation: z.boolean().optional() }).nullish(),
  max_output_tokens: z.int().min(16).nullish(),
  temperature: z.literal(1).nullish(),
  top_p: z.number().nullish(),
  tools: z.array(tool).optional(),
  tool_choice: z
    .union([
      z.enum(['auto', 'none', 'required']),
      z.strictObject({ type: z.literal('function'), name: z.string() }),
    ])
    .optional(),
  parallel_tool_calls: z.boolean().nullish(),
  text: z
    .strictObject({
      format: z
        .discriminatedUnion('type', [
          z.strictObject({ type: z.literal('text') }),
          z.strictObject({
            type: z.literal('json_schema'),
            name: z.string().regex(/^[\w-]{1,64}$/),
            description: z.string().optional(),
            schema: bareSchema,
            strict: z.boolean().nullish(),
          }),
        ])
        .optional(),
      verbosity: z.enum(['low', 'medium', 'high']).nullish(),
    })
    .optional(),
  reasoning: z
    .strictObject({
      effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']).nullish(),
      summary: z.enum(['auto', 'concise', 'detailed']).nullish(),
    })
    .nullish(),
  include: z.array(z.literal('reasoning.encrypted_content')).nullish(),
  store: z.boolean().nullish(),
  previous_response_id: z.string().nullish(),
  truncation: z.enum(['auto', 'disabled']).nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  client_metadata: z.record(z.string(), z.string()).nullish(),
  prompt_cache_key: z.string().optional(),
  safety_identifier: z.string().max(64).optional(),
  user: z.string().optional(),
  service_tier: z.enum(['auto', 'default', 'flex', 'priority']).nullish(),
})
export type ResponsesRequest = z.infer<typeof request>

/** The provider's store: the items of its answers, and the whole conversation behind each response. */
export interface Kept {
  readonly items: ReadonlyMap<string, Item>
  readonly conversations: ReadonlyMap<string, readonly Item[]>
}

/** Reads a request as strictly as the provider, with what it refers to; throws a refusal. */
export function readResponses(
  body: unknown,
  kept: Kept,
): ResponsesRequest & { heard: Heard; conversation: readonly Item[] } {
  const { data, error } = request.safeParse(body)
  const [issue] = error?.issues ?? []
  must(data, `${issue?.message} at ${issue?.path.join('.')}`, issue?.path.join('.'))
  const { previous_response_id: previous, input, tools = [] } = data
  const earlier = previous == null ? [] : kept.conversations.get(previous)
  must(earlier, `Previous response with id '${previous}' not found.`, 'previous_response_id')
  const given: readonly Item[] = typeof input === 'string' ? [{ role: 'user', content: input }] : input
  const conversation = [...earlier, ...given].map((one) => {
    if (one.type !== 'item_reference') return one
    const found = kept.items.get(one.id)
    must(found, `Item with id '${one.id}' not found.`, 'input')
    return found
  })
  checkReasoning(conversation, kept)
  const functions = tools.flatMap((one) =>
    one.type === 'function' ? [one] : 'tools' in one ? one.tools : [],
  )
  const format = data.text?.format
  const effort = data.reasoning?.effort
  const heard: Heard = {
    tools: functions.map(({ name, parameters }) => ({ name, members: membersOf(parameters ?? undefined) })),
    wantsForm: format?.type === 'json_schema' && membersOf(format.schema).includes('count'),
    thinks: effort != null && effort !== 'none',
    files: filesOf(conversation),
    thoughts: conversation.filter(({ type }) => type === 'reasoning').length,
    asksForFile: isAboutFile(body),
    results: resultsOf(conversation),
  }
  return { ...data, heard, conversation }
}

/** Sealed reasoning must come back as it was, or be kept; and what it led to must follow it. */
function checkReasoning(items: readonly Item[], { items: kept }: Kept): void {
  for (const [i, one] of items.entries()) {
    if (one.type !== 'reasoning') continue
    const { id, summary, encrypted_content: sealed } = one
    if (sealed == null)
      must(kept.has(id), `Item with id '${id}' not found. Items are not persisted when store is false.`)
    else must(sealed === sealOf(id), `The encrypted content for item ${id} could not be verified.`)
    for (const { text } of summary) must(isThought(text), `The summary of ${id} is not what was thought.`)
    const next = items[i + 1]
    must(
      next?.type === 'function_call' || (next && 'role' in next && next.role === 'assistant'),
      `Item '${id}' of type 'reasoning' was provided without its required following item.`,
    )
  }
}

function resultsOf(items: readonly Item[]): readonly string[] {
  const calls = items.flatMap((one) => (one.type === 'function_call' ? [one.call_id] : []))
  must(new Set(calls).size === calls.length, 'Duplicate item found.')
  const results = items.flatMap((one) => (one.type === 'function_call_output' ? [one] : []))
  return pairedResults(calls, new Map(results.map((one) => [one.call_id, textOf(one.output)])))
}

const textOf = (value: z.infer<typeof output>['output']): string =>
  typeof value === 'string'
    ? value
    : value.map((part) => (part.type === 'input_text' ? part.text : '')).join('')

/** The files behind the last answer. */
function filesOf(items: readonly Item[]): Heard['files'] {
  const answered = items.findLastIndex(
    (one) => one.type === 'function_call' || ('role' in one && one.role === 'assistant'),
  )
  const parts = items.slice(answered + 1).flatMap((one) => {
    const content = one.type === 'function_call_output' ? one.output : 'content' in one ? one.content : []
    return Array.isArray(content) ? (content as z.infer<typeof inputPart>[]) : []
  })
  return parts.flatMap((one) => {
    if (one.type === 'input_image') return [fileOfDataUrl(one.image_url)]
    return one.type === 'input_file' ? [fileOfDataUrl(one.file_data)] : []
  })
}
