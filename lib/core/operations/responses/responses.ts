import { type JsonObject, someObject } from '../../json/index.ts'
import { renamedBody } from '../body/upstream-body.ts'
import { type AnswerReading, type Operation, PREFIX_CHARS, type StreamingOperation } from '../operation.ts'
import { readResponse } from './responses-answer.ts'
import { responsesFacts } from './responses-facts.ts'
import { responseForm } from './responses-form.ts'
import { type ResponsesBody, responsesSchema } from './responses-schema.ts'
import { ResponseStreamReader } from './responses-stream.ts'

/** OpenAI-style response: `POST /v1/responses`. */
export const responses: StreamingOperation = {
  name: 'responses',
  kind: 'chat',
  priceUnit: 'tokens',
  protocol: 'openai',
  path: '/v1/responses',
  upstreamPath: '/responses',
  schema: responsesSchema,
  facts: (json, raw, estimate) => responsesFacts(json as ResponsesBody, raw, estimate),
  promptPrefix: (json) => promptPrefix(json as ResponsesBody),
  keeps: (json) => json.store !== false || someObject(json.tools, runsInContainer),
  upstreamBody: (raw, json, { model }) => renamedBody(raw, json, model),
  answerForm: responseForm,
  readAnswer: readResponse,
  streamReader: ({ json }) => new ResponseStreamReader(json),
  // The last event contains the usage: a stream without it is incomplete.
  streamTerminator: '',
}

/**
 * A request about a response that was made earlier: `GET` and `DELETE /v1/responses/{id}`. It is not in `OPERATIONS`,
 * because it runs no model. The `resource` of the call is the request to the line.
 */
export const storedResponses: Operation = {
  ...responses,
  name: 'responses.stored',
  priceUnit: 'none',
  path: '/v1/responses/:id',
  readAnswer: readObject,
}

/**
 * OpenAI-style compaction of a conversation: `POST /v1/responses/compact`. A model writes it, and seals it, so that no
 * line has to keep it.
 */
export const compactResponse: Operation = {
  name: 'responses.compact',
  kind: responses.kind,
  priceUnit: 'tokens',
  protocol: responses.protocol,
  path: '/v1/responses/compact',
  upstreamPath: '/responses/compact',
  schema: responses.schema,
  facts: responses.facts,
  promptPrefix: responses.promptPrefix,
  upstreamBody: responses.upstreamBody,
  readAnswer: readResponse,
}

function readObject(json: unknown): AnswerReading {
  if (typeof json !== 'object' || json === null) throw new SyntaxError('the answer is not an object')
  return { substance: 'output', usage: {}, estimateOutput: () => 0 }
}

function runsInContainer({ type }: JsonObject): boolean {
  return type === 'code_interpreter' || type === 'shell'
}

function promptPrefix({ instructions, input }: ResponsesBody): string {
  let prefix = ''
  for (const value of [instructions, input]) {
    if (typeof value === 'string') prefix += `${value}\n`
    else {
      for (const { role, content } of value ?? []) {
        const text =
          typeof content === 'string' ? content : (content ?? []).map(({ text }) => text ?? '').join('')
        prefix += `${role ?? ''}:${text}\n`
        if (prefix.length >= PREFIX_CHARS) break
      }
    }
  }
  return prefix.slice(0, PREFIX_CHARS)
}
