import type { Answer } from './answer.ts'
import { readInputs } from './inputs.ts'
import { asObject, type JsonObject, type Prompt, readCount, readText } from './prompt.ts'
import { newId, type Rendering, type TextEndpoint } from './text-endpoint.ts'
import { countTokens } from './tokens.ts'

const MAX_CHOICES = 8
/** The default of the real API. */
const OUTPUT_TOKENS = 16
const MAX_OUTPUT_TOKENS = 16_384

/** Serves `POST /v1/completions`. Of several prompts, only the first is answered. */
export const completions: TextEndpoint = { provider: 'openai', read, render }

function read(body: JsonObject): Prompt {
  const prompts = readInputs(body, 'prompt')
  return {
    model: readText(body, 'model'),
    stream: body.stream === true,
    includeUsage: asObject(body.stream_options)?.include_usage === true,
    choices: readCount(body, 'n', 1, MAX_CHOICES) * prompts.length,
    system: '',
    lastUserText: prompts[0] ?? '',
    toolResult: undefined,
    tools: [],
    toolChoice: 'none',
    json: undefined,
    maxOutputTokens: readCount(body, 'max_tokens', OUTPUT_TOKENS, MAX_OUTPUT_TOKENS),
    inputTokens: prompts.reduce((sum, text) => sum + countTokens(text), 0),
  }
}

const FINISH_REASON = { stop: 'stop', tool: 'stop', length: 'length', filtered: 'content_filter' } as const

function render(prompt: Prompt, answers: readonly Answer[]): Rendering {
  const id = newId('cmpl-')
  const created = Math.floor(Date.now() / 1000)
  const written = answers.reduce((tokens, answer) => tokens + answer.tokens.length, 0)
  const usage = {
    prompt_tokens: prompt.inputTokens,
    completion_tokens: written,
    total_tokens: prompt.inputTokens + written,
  }
  const envelope = (choices: readonly object[], extra: object = {}) => ({
    id,
    object: 'text_completion',
    created,
    model: prompt.model,
    choices,
    ...extra,
  })
  const choice = (index: number, text: string, finish: string | null) => {
    return { text, index, logprobs: null, finish_reason: finish }
  }
  const frame = (choices: readonly object[], reported: object | null = null): string =>
    `data: ${JSON.stringify(envelope(choices, prompt.includeUsage ? { usage: reported } : {}))}\n\n`

  return {
    body: () => {
      const choices = answers.map(({ tokens, finish }, index) =>
        choice(index, tokens.join(''), FINISH_REASON[finish]),
      )
      return envelope(choices, { usage })
    },
    *opening() {
      for (const [index, { tokens }] of answers.entries())
        for (const token of tokens) yield frame([choice(index, token, null)])
    },
    *closing() {
      for (const [index, { finish }] of answers.entries())
        yield frame([choice(index, '', FINISH_REASON[finish])])
      if (prompt.includeUsage) yield frame([], usage)
      yield 'data: [DONE]\n\n'
    },
  }
}
