import type { ServerResponse } from 'node:http'
import type { ErrorCode } from '../../../lib/core/errors/index.ts'
import { type LineSeed, startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  messageAnswer,
  messageEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import type { AskOptions, ClientOptions, SdkName } from './clients.ts'

/** One way to be refused, or to fail, on the real chain. */
export interface Situation {
  readonly code: ErrorCode
  readonly model?: string
  readonly client?: ClientOptions
  readonly ask?: (sdk: SdkName) => AskOptions
  readonly param?: string
}

const key = (apiKey: string) => ({ client: { apiKey } })
const TOOLS: Record<SdkName, object> = {
  openai: { type: 'function', function: { name: 'f' } },
  anthropic: { name: 'f', input_schema: { type: 'object' } },
}
const withoutKey = { client: { defaultHeaders: { authorization: null, 'x-api-key': null } } }

/** Milliseconds that the upstream of "limited" asks to be left alone for. */
const REST_MS = 150

/** Every code that the chain can answer with today. */
export const SITUATIONS: readonly Situation[] = [
  { code: 'missing_credential', ...withoutKey },
  { code: 'invalid_credential', ...key('sk-wrong') },
  { code: 'key_disabled', ...key('sk-disabled') },
  { code: 'key_expired', ...key('sk-expired') },
  { code: 'ip_not_allowed', ...key('sk-elsewhere') },
  { code: 'region_denied', ...key('sk-abroad') },
  { code: 'model_not_allowed', ...key('sk-few-models') },
  { code: 'invalid_request', ask: () => ({ extra: { temperature: 'hot' } }), param: 'temperature' },
  { code: 'model_not_found', model: 'nowhere' },
  {
    code: 'unsupported_feature',
    model: 'plain',
    ask: (sdk) => ({ extra: { tools: [TOOLS[sdk]] } }),
    param: 'tools',
  },
  { code: 'context_too_long', model: 'narrow' },
  { code: 'request_too_large', ask: () => ({ extra: { metadata: { user_id: 'x'.repeat(40_000) } } }) },
  { code: 'no_candidate', ask: () => ({ headers: { 'x-gateway-provider': '{"only":["nobody"]}' } }) },
  { code: 'content_filtered', model: 'filtered' },
  { code: 'upstream_error', model: 'failing' },
  { code: 'upstream_overloaded', model: 'overloaded' },
  { code: 'upstream_timeout', model: 'silent' },
  { code: 'empty_completion', model: 'empty' },
  { code: 'upstream_rate_limited', model: 'limited' },
  { code: 'circuit_open', model: 'broken' },
  { code: 'all_candidates_failed', model: 'hopeless' },
  { code: 'internal_error', model: 'crashing' },
]

/** A gateway on which every situation can be brought about by either SDK. */
export interface SituationGateway {
  readonly gateway: TestGateway
  readonly upstream: ScriptedUpstream
  close(): Promise<void>
}

export async function startSituations(): Promise<SituationGateway> {
  const upstream = await startUpstream((res, { json, path }) =>
    perform(res, json.model, path.endsWith('/messages') ? 'anthropic' : 'openai', json.stream === true),
  )
  const line = (protocol: SdkName, id: string, models: object, extra: object = {}): LineSeed => ({
    url: upstream.url,
    id: `${protocol}-${id}`,
    protocol,
    models: models as Record<string, string>,
    circuit: { minimumCalls: 1000 },
    ...extra,
  })
  const alone = ['filtered', 'failing', 'overloaded', 'empty', 'limited', 'plain', 'narrow', 'crashing']
  const gateway = await startGateway({
    lines: (['openai', 'anthropic'] as const).flatMap((protocol) => [
      line(protocol, 'chat', { chat: 'healthy' }),
      ...alone.map((model) => line(protocol, model, { [model]: model })),
      line(protocol, 'silent', { silent: 'silent' }, { timeouts: { firstByteMs: 60 } }),
      line(protocol, 'broken', { broken: 'failing' }, { circuit: { minimumCalls: 1, resetMs: 600_000 } }),
      line(protocol, 'hopeless-1', { hopeless: 'failing' }),
      line(protocol, 'hopeless-2', { hopeless: 'overloaded' }),
    ]),
    config: {
      bodyLimitBytes: 20_000,
      accounts: [{ id: 'acme' }, { id: 'abroad', regions: ['mars'] }],
      keys: [
        { id: 'key_acme', account: 'acme', secret: 'sk-test-1' },
        { id: 'disabled', account: 'acme', secret: 'sk-disabled', enabled: false },
        { id: 'expired', account: 'acme', secret: 'sk-expired', expiresAt: '2020-01-01T00:00:00Z' },
        { id: 'elsewhere', account: 'acme', secret: 'sk-elsewhere', allowIps: ['192.0.2.1'] },
        { id: 'abroad', account: 'abroad', secret: 'sk-abroad' },
        { id: 'few', account: 'acme', secret: 'sk-few-models', allowModels: ['claude-*'] },
      ],
      models: [
        { id: 'chat', kind: 'chat' },
        ...[...alone, 'silent', 'broken', 'hopeless'].map((id) => ({
          id,
          kind: 'chat',
          ...(id === 'plain' && { features: ['stream'] }),
          ...(id === 'narrow' && { contextWindow: 2 }),
        })),
      ],
    },
    route: {
      strategy: (candidates, call) => {
        if (call.model === 'crashing') throw new Error('a fault nobody foresaw')
        // Each situation is that of one line.
        return candidates.filter(({ line }) => line.protocol === call.protocol.name)
      },
    },
  })
  return {
    gateway,
    upstream,
    async close() {
      await gateway.close()
      await upstream.close()
    },
  }
}

async function perform(res: ServerResponse, model: string, sdk: SdkName, streams: boolean): Promise<void> {
  const error = (status: number, type: string, headers = {}) =>
    answerJson(res, status, { type: 'error', error: { type, message: 'told by the upstream' } }, headers)
  switch (model) {
    case 'silent':
      return
    case 'failing':
      return error(500, 'api_error')
    case 'overloaded':
      return error(sdk === 'openai' ? 503 : 529, 'overloaded_error')
    case 'limited':
      return error(429, 'rate_limit_error', { 'retry-after-ms': String(REST_MS) })
    case 'filtered':
      return answerJson(res, 400, { error: { code: 'content_policy_violation', message: 'No.' } })
    case 'empty':
      if (streams) return stream(res, sdk === 'openai' ? chatEvents([]) : messageEvents([]))
      return sdk === 'openai' ? chatAnswer(res, '') : messageAnswer(res, '', { content: [] })
    default:
      if (streams) return stream(res, sdk === 'openai' ? chatEvents(['Hello']) : messageEvents(['Hello']))
      return sdk === 'openai' ? chatAnswer(res) : messageAnswer(res)
  }
}
