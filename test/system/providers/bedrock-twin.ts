import { Sha256 } from '@aws-crypto/sha256-js'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { SignatureV4 } from '@smithy/signature-v4'
import { chatCompletion, message, messageEventsOf } from './answers.ts'
import type { Twin, TwinAnswer, TwinRequest } from './twin-server.ts'

/** The account that the twin knows. */
export const AWS_ACCOUNT = {
  accessKeyId: 'AKIDTWIN',
  secretAccessKey: 'twin-secret-key-0123',
  sessionToken: 'twin-session',
}

const REGION = 'us-east-1'
const CLAUDE = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'
const OSS = 'openai.gpt-oss-120b-1:0'
/** The members of a message's body that Bedrock knows; the model stands in the path. */
const KNOWN = [
  'anthropic_version',
  'anthropic_beta',
  'max_tokens',
  'messages',
  'system',
  'temperature',
  'top_p',
  'top_k',
  'tools',
  'tool_choice',
  'stop_sequences',
  'thinking',
]

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString(),
  (text) => Buffer.from(text),
)

/** Returns a message of AWS's event stream. */
export function awsMessage(headers: Readonly<Record<string, string>>, body: object): Uint8Array {
  const strings = Object.entries(headers).map(([name, value]) => [name, { type: 'string', value }] as const)
  return codec.encode({ headers: Object.fromEntries(strings), body: Buffer.from(JSON.stringify(body)) })
}

/** Returns a chunk of a model's answer, as Bedrock wraps it. */
export function awsChunk(event: object): Uint8Array {
  const bytes = Buffer.from(JSON.stringify(event)).toString('base64')
  return awsMessage(
    { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' },
    { bytes, p: 'abcdef' },
  )
}

/** Bedrock: paths that name the model, signatures that are computed again, event streams. */
export const bedrockTwin: Twin = async (request) => {
  const { path, json, raw } = request
  if (!(await isSigned(request)))
    return {
      status: 403,
      body: { message: 'The request signature we calculated does not match the signature you provided.' },
    }
  if (path === '/openai/v1/chat/completions')
    return json.model === OSS
      ? chatCompletion(request)
      : { status: 400, body: { message: 'The provided model identifier is invalid.' } }
  const [, model, how] = /^\/model\/([^/]+)\/(invoke|invoke-with-response-stream)$/.exec(path) ?? []
  if (model === undefined) return { status: 404, body: { message: 'UnknownOperationException' } }
  if (decodeURIComponent(model) !== CLAUDE)
    return { status: 400, body: { message: 'The provided model identifier is invalid.' } }
  const strange = Object.keys(json).find((name) => !KNOWN.includes(name))
  if (strange !== undefined) return malformed(`#: extraneous key [${strange}] is not permitted`)
  if (json.anthropic_version !== 'bedrock-2023-05-31')
    return malformed('#: required key [anthropic_version] not found')
  if (raw.length === 0 || json.max_tokens === undefined)
    return malformed('#: required key [max_tokens] not found')
  if (how === 'invoke') return message(CLAUDE, false)
  const metrics = { inputTokenCount: 7, outputTokenCount: 3, invocationLatency: 9 }
  return {
    type: 'application/vnd.amazon.eventstream',
    pieces: messageEventsOf(CLAUDE).map(([type, event]) =>
      awsChunk(type === 'message_stop' ? { ...event, 'amazon-bedrock-invocationMetrics': metrics } : event),
    ),
  }
}

function malformed(text: string): TwinAnswer {
  return {
    status: 400,
    body: { message: `Malformed input request: ${text}, please reformat your input and try again.` },
  }
}

/** Computes the signature again, over what has arrived. */
async function isSigned({ method, host, path, query, headers, raw }: TwinRequest): Promise<boolean> {
  const given = /SignedHeaders=([^,]+), Signature=/.exec(headers.authorization ?? '')?.[1]?.split(';') ?? []
  const date = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(String(headers['x-amz-date']))
  if (!date || !['host', 'x-amz-date', 'x-amz-security-token'].every((name) => given.includes(name)))
    return false
  const [year, month, day, hour, minute, second] = date.slice(1)
  const signingDate = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  if (Math.abs(Date.now() - signingDate.getTime()) > 300_000) return false
  const signed = await new SignatureV4({
    service: 'bedrock',
    region: REGION,
    credentials: AWS_ACCOUNT,
    sha256: Sha256,
  }).sign(
    {
      method,
      protocol: 'https:',
      hostname: host,
      path,
      query: Object.fromEntries(query),
      headers: Object.fromEntries(given.map((name) => [name, String(headers[name])])),
      body: raw,
    },
    { signingDate },
  )
  return signed.headers.authorization === headers.authorization
}
