import { z } from 'zod'
import { bareSchema, membersOf } from './schemas.ts'
import { fileOfDataUrl, type Heard, isAboutFile, isThought, must, pairedResults, sealOf } from './script.ts'

const text = z.strictObject({ type: z.literal('text'), text: z.string().min(1) })
const texts = z.union([z.string(), z.array(text).min(1)])
const part = z.discriminatedUnion('type', [
  text,
  z.strictObject({
    type: z.literal('image_url'),
    image_url: z.strictObject({ url: z.string(), detail: z.enum(['auto', 'low', 'high']).optional() }),
  }),
  z.strictObject({
    type: z.literal('file'),
    file: z.strictObject({ filename: z.string(), file_data: z.string() }),
  }),
])
const call = z.strictObject({
  id: z.string().min(1).max(40),
  type: z.literal('function'),
  function: z.strictObject({ name: z.string().regex(/^[\w-]{1,64}$/), arguments: z.string() }),
})
const signedCall = call.extend({
  extra_content: z.strictObject({ google: z.strictObject({ thought_signature: z.string() }) }).optional(),
})
const name = z.string().optional()
const message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.enum(['system', 'developer']), content: texts, name }),
  z.strictObject({ role: z.literal('user'), content: z.union([z.string(), z.array(part).min(1)]), name }),
  z.strictObject({
    role: z.literal('assistant'),
    // OpenAI's own Agents send more with a part of theirs.
    content: z.union([z.string(), z.array(text.loose()).min(1)]).nullish(),
    parsed: z.null().optional(),
    refusal: z.null().optional(),
    annotations: z.array(z.never()).optional(),
    name,
    reasoning_content: z.string().optional(),
    extra_content: z.looseObject({}).optional(),
    tool_calls: z.array(signedCall).min(1).optional(),
  }),
  z.strictObject({ role: z.literal('tool'), tool_call_id: z.string(), content: texts, name }),
])
type Message = z.infer<typeof message>

const tool = z.strictObject({
  type: z.literal('function'),
  function: z.strictObject({
    name: z.string().regex(/^[\w-]{1,64}$/),
    description: z.string().optional(),
    parameters: bareSchema.optional(),
    strict: z.boolean().nullish(),
  }),
})

/** The members that OpenAI's chat completions accept, of those that these clients could send. */
const request = z.strictObject({
  model: z.string(),
  messages: z.array(message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.strictObject({ include_usage: z.boolean().optional() }).nullish(),
  max_tokens: z.int().min(1).nullish(),
  max_completion_tokens: z.int().min(1).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().nullish(),
  n: z.literal(1).optional(),
  stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
  tools: z.array(tool).min(1).optional(),
  tool_choice: z
    .union([
      z.enum(['auto', 'none', 'required']),
      z.strictObject({ type: z.literal('function'), function: z.strictObject({ name: z.string() }) }),
    ])
    .optional(),
  parallel_tool_calls: z.boolean().optional(),
  response_format: z
    .discriminatedUnion('type', [
      z.strictObject({ type: z.literal('text') }),
      z.strictObject({ type: z.literal('json_object') }),
      z.strictObject({
        type: z.literal('json_schema'),
        json_schema: z.strictObject({
          name: z.string().regex(/^[\w-]{1,64}$/),
          description: z.string().optional(),
          schema: bareSchema,
          strict: z.boolean().nullish(),
        }),
      }),
    ])
    .optional(),
  reasoning_effort: z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh']).optional(),
  verbosity: z.enum(['low', 'medium', 'high']).optional(),
  prompt_cache_key: z.string().optional(),
  safety_identifier: z.string().max(64).optional(),
  user: z.string().max(64).optional(),
  store: z.boolean().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
  service_tier: z.enum(['auto', 'default', 'flex', 'priority']).nullish(),
})
export type ChatRequest = z.infer<typeof request>

/** The differences between OpenAI-style providers. */
export interface ChatHabits {
  /** OpenAI's models: the members of older models are refused, and what was thought is never shown. */
  readonly openai?: boolean
  /** Gemini's: the first call of each turn is signed, and must come back so. */
  readonly signed?: boolean
}

/** Reads a request as strictly as the provider; throws a refusal. */
export function readChat(
  body: unknown,
  { openai = false, signed = false }: ChatHabits,
): ChatRequest & { heard: Heard } {
  const { data, error } = request.safeParse(body)
  const [issue] = error?.issues ?? []
  must(data, `${issue?.message} at ${issue?.path.join('.')}`, issue?.path.join('.'))
  if (openai) {
    must(data.max_tokens == null, "Unsupported parameter: 'max_tokens' is not supported with this model.")
    must(
      data.temperature == null || data.temperature === 1,
      "Unsupported value: 'temperature' does not support it.",
    )
    must(!data.messages.some((one) => 'reasoning_content' in one), "Unknown parameter: 'reasoning_content'.")
  }
  if (!signed) must(!JSON.stringify(body).includes('"extra_content"'), "Unknown parameter: 'extra_content'.")
  must(data.stream_options == null || data.stream, 'stream_options is only allowed with stream.')
  if (signed) checkSignatures(data.messages)
  const format = data.response_format
  must(
    format?.type !== 'json_object' || /json/i.test(JSON.stringify(data.messages)),
    "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
  )
  const tools = data.tools ?? []
  const heard: Heard = {
    tools: tools.map(({ function: { name, parameters } }) => ({ name, members: membersOf(parameters) })),
    wantsForm: format?.type === 'json_schema' && membersOf(format.json_schema.schema).includes('count'),
    thinks: !openai && data.reasoning_effort !== undefined && data.reasoning_effort !== 'none',
    files: filesOf(data.messages),
    thoughts: data.messages.filter((one) => 'reasoning_content' in one && isThought(one.reasoning_content))
      .length,
    asksForFile: isAboutFile(body),
    results: resultsOf(data.messages),
  }
  return { ...data, heard }
}

const textOf = (content: z.infer<typeof texts>): string =>
  typeof content === 'string' ? content : content.map((one) => one.text).join('')

/** Results must follow the turn of their calls at once, and complete. */
function resultsOf(messages: readonly Message[]): readonly string[] {
  const all: string[] = []
  for (let i = 0; i < messages.length; i++) {
    const turn = messages[i] as Message
    must(
      turn.role !== 'tool',
      "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
    )
    if (turn.role !== 'assistant' || !turn.tool_calls) continue
    const results = new Map<string, string>()
    for (let next = messages[i + 1]; next?.role === 'tool'; next = messages[++i + 1])
      results.set(next.tool_call_id, textOf(next.content))
    for (const one of turn.tool_calls)
      must(isObject(one.function.arguments), 'Arguments are not a JSON object.')
    all.push(
      ...pairedResults(
        turn.tool_calls.map(({ id }) => id),
        results,
      ),
    )
  }
  return all
}

function isObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null
  } catch {
    return false
  }
}

function checkSignatures(messages: readonly Message[]): void {
  for (const turn of messages) {
    if (turn.role !== 'assistant' || !turn.tool_calls) continue
    const [first] = turn.tool_calls
    const signature = first?.extra_content?.google.thought_signature
    must(
      signature === sealOf(first?.id ?? ''),
      `Function call ${first?.function.name} is missing a thought_signature in functionCall parts.`,
    )
  }
}

function filesOf(messages: readonly Message[]): Heard['files'] {
  const last = messages.at(-1)
  if (last?.role !== 'user' || typeof last.content === 'string') return []
  return last.content.flatMap((one) => {
    if (one.type === 'text') return []
    return [fileOfDataUrl(one.type === 'file' ? one.file.file_data : one.image_url.url)]
  })
}
