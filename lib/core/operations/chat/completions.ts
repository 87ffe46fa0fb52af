import { z } from 'zod'
import { furtherModels } from '../body/further-models.ts'
import { providerConstraintSchema } from '../body/provider-constraint.ts'
import { asksForUsage, meteredBody } from '../body/upstream-body.ts'
import { prefixOf, sizeOf, textOrTokens } from '../metering/text-or-tokens.ts'
import { TOKENS_PER_REQUEST } from '../metering/token-estimate.ts'
import { plainFacts, type RequestFacts, type StreamingOperation, type TokenEstimator } from '../operation.ts'
import { type ChoiceForm, readChoices } from './chat-answer.ts'
import { completionForm } from './chat-form.ts'
import { ChatStreamReader } from './chat-stream.ts'

const choices = z.int().min(1).max(128).nullish()

/** The members of a completion request that the gateway reads; unknown members pass through unchanged. */
const schema = z.looseObject({
  model: z.string().min(1),
  models: furtherModels.nullish(),
  prompt: textOrTokens,
  suffix: z.string().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: choices,
  best_of: choices,
  // 0 asks for information about the prompt (`echo`, `logprobs`) and no output.
  max_tokens: z.int().min(0).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  provider: providerConstraintSchema.nullish(),
})

type CompletionBody = z.output<typeof schema>

/** The form of choices that contain their text directly. */
const TEXT_CHOICE: ChoiceForm = {
  output: ({ text, reasoning, reasoning_content }) => ({ content: text, reasoning, reasoning_content }),
  textMember: ({ text, logprobs, finish_reason }) =>
    typeof text === 'string' && text !== '' && !logprobs && !finish_reason ? 'text' : undefined,
}

/** The older OpenAI-style completion of a text: `POST /v1/completions`. */
export const completions: StreamingOperation = {
  name: 'completions',
  kind: 'chat',
  priceUnit: 'tokens',
  protocol: 'openai',
  path: '/v1/completions',
  upstreamPath: '/completions',
  schema,
  facts: (json, _raw, estimate) => completionFacts(json as CompletionBody, estimate),
  promptPrefix: (json) => prefixOf((json as CompletionBody).prompt),
  upstreamBody: meteredBody,
  answerForm: completionForm,
  readAnswer: (json, request) => readChoices(json, request, TEXT_CHOICE),
  streamTerminator: 'data: [DONE]\n\n',
  streamReader: ({ json }) =>
    new ChatStreamReader({
      answers: choicesOf(json as CompletionBody),
      relayUsage: asksForUsage(json),
      request: json,
      form: TEXT_CHOICE,
    }),
}

/** Returns how many texts are returned: `n` for each prompt. */
function choicesOf({ prompt, n }: CompletionBody): number {
  return (n ?? 1) * sizeOf(prompt, () => 0).texts
}

function completionFacts(body: CompletionBody, estimate: TokenEstimator): RequestFacts {
  const { model, prompt, suffix, stream, n, best_of, max_tokens } = body
  const { texts, tokens, longest } = sizeOf(prompt, estimate)
  const suffixTokens = suffix ? estimate(suffix) : 0
  return {
    model,
    ...plainFacts(stream),
    estimatedInputTokens: TOKENS_PER_REQUEST + tokens + texts * suffixTokens,
    windowTokens: TOKENS_PER_REQUEST + longest + suffixTokens,
    maxOutputTokens: max_tokens ?? undefined,
    // All generated texts are paid, and the best of them are returned.
    answers: texts * Math.max(n ?? 1, best_of ?? 1),
  }
}
