import Anthropic from '@anthropic-ai/sdk'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { FORM, SYSTEM } from '../scenarios.ts'
import { type Ask, CLAUDE, type Framework, MAX_TOKENS, type Place, type Reply } from './framework.ts'
import { runTool, TOOLS } from './tools.ts'

async function messages(ask: Ask, { url, apiKey, headers, model }: Place): Promise<Reply> {
  const client = new Anthropic({ baseURL: url, apiKey, defaultHeaders: headers, maxRetries: 0 })
  const [first, ...further] = ask.questions as [string, ...string[]]
  const content: Anthropic.ContentBlockParam[] = [{ type: 'text', text: first }]
  const data = ask.file?.bytes.toString('base64') ?? ''
  if (ask.file?.type === 'image/png')
    content.unshift({ type: 'image', source: { type: 'base64', media_type: ask.file.type, data } })
  if (ask.file?.type === 'application/pdf')
    content.unshift({ type: 'document', source: { type: 'base64', media_type: ask.file.type, data } })
  const turns: Anthropic.MessageParam[] = [{ role: 'user', content }]
  const body = {
    model,
    max_tokens: MAX_TOKENS,
    system: [{ type: 'text' as const, text: SYSTEM, cache_control: { type: 'ephemeral' as const } }],
    messages: turns,
    ...(ask.thinks && { thinking: { type: 'enabled' as const, budget_tokens: 2000 } }),
    ...(ask.form && { output_config: { format: zodOutputFormat(FORM) } }),
    ...(ask.tools && {
      tools: TOOLS.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters })),
    }),
  }
  for (;;) {
    let pieces = 0
    const streaming = ask.streamed && client.messages.stream(body).on('text', () => pieces++)
    const answer = await (streaming ? streaming.finalMessage() : client.messages.parse(body))
    turns.push({ role: 'assistant', content: answer.content })
    if (answer.stop_reason !== 'tool_use') {
      const text = answer.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')
      const question = further.shift()
      if (question === undefined) return { text, pieces, form: answer.parsed_output }
      turns.push({ role: 'user', content: question })
      continue
    }
    const uses = answer.content.filter((block) => block.type === 'tool_use')
    turns.push({
      role: 'user',
      content: uses.map(({ id, name, input }) => ({
        type: 'tool_result',
        tool_use_id: id,
        content: runTool(name, input),
      })),
    })
  }
}

export const ANTHROPIC: readonly Framework[] = [
  { name: '@anthropic-ai/sdk', speaks: 'messages', model: CLAUDE, ask: messages },
]
