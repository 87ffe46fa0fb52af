import { DEMO_MODELS } from './models.ts'

export const DEMO_KEY = 'sk-demo'

/** The model of a first request. */
export const DEMO_MODEL = 'chat-small'

/** The demo models that answer; the config has its own models for them. */
const HEALTHY: ReadonlySet<string> = new Set([
  'demo-chat',
  'demo-claude',
  'demo-embedding',
  'demo-image',
  'demo-rerank',
])

/** The OpenAI-style endpoints of the demo model server. */
const OPENAI_ENDPOINTS = [
  'chat/completions',
  'completions',
  'responses',
  'embeddings',
  'images/generations',
  'rerank',
  'videos',
]

const CHAT_PRICE = { inputPerMillion: '0.15', outputPerMillion: '0.60', cachedInputPerMillion: '0.075' }

/**
 * Returns the config that is used without GATEWAY_CONFIG. Its lines lead to the demo model server of this example, which
 * answers by rule and is no AI. It has models of each kind that answer, models that always need their second line, and a
 * model for each fault that the demo server can simulate, on a line of its own, so that one open circuit does not affect
 * the others.
 *
 * @param origin the origin of the demo model server.
 * @param apiKey the key that the server demands.
 */
export function demoConfig(origin: string, apiKey: string): object {
  const line = (
    id: string,
    protocol: 'openai' | 'anthropic' | 'ark',
    models: Record<string, string>,
    extra: object = {},
  ) => ({
    id,
    provider: `demo-${protocol}`,
    protocol,
    baseUrl: protocol === 'ark' ? `${origin}/api/v3` : `${origin}/v1`,
    apiKey,
    models,
    ...(protocol === 'openai' && { endpoints: OPENAI_ENDPOINTS }),
    ...extra,
  })
  const situations = DEMO_MODELS.map(({ id }) => id).filter((id) => !HEALTHY.has(id))
  return {
    region: 'local',
    accounts: [
      { id: 'demo', name: 'Demo', balance: '25.00', limits: { rpm: 600, tpm: 200_000, concurrency: 20 } },
    ],
    keys: [{ id: 'key_demo', account: 'demo', secret: DEMO_KEY }],
    models: [
      { id: DEMO_MODEL, kind: 'chat', contextWindow: 128_000, maxOutputTokens: 4096, price: CHAT_PRICE },
      { id: 'claude-demo', kind: 'chat', contextWindow: 200_000, maxOutputTokens: 8192, price: CHAT_PRICE },
      { id: 'chat-failover', kind: 'chat', maxOutputTokens: 4096, price: CHAT_PRICE },
      { id: 'embedding-small', kind: 'embedding', contextWindow: 8192, price: { inputPerMillion: '0.02' } },
      { id: 'embedding-failover', kind: 'embedding', price: { inputPerMillion: '0.02' } },
      { id: 'image-small', kind: 'image', price: { perImage: '0.011' } },
      { id: 'rerank-small', kind: 'rerank', price: { perSearchUnit: '0.002' } },
      { id: 'video-small', kind: 'video', price: { perSecond: '0.10' } },
      { id: 'video-tasks', kind: 'video', price: { outputPerMillion: '2.50' } },
      ...situations.map((id) => ({ id, kind: 'chat', price: CHAT_PRICE })),
    ],
    lines: [
      line(
        'demo-us',
        'openai',
        {
          [DEMO_MODEL]: 'demo-chat',
          'embedding-small': 'demo-embedding',
          'image-small': 'demo-image',
          'rerank-small': 'demo-rerank',
          'video-small': 'demo-video',
        },
        { region: 'us' },
      ),
      line(
        'demo-eu',
        'openai',
        { [DEMO_MODEL]: 'demo-chat', 'chat-failover': 'demo-chat', 'embedding-failover': 'demo-embedding' },
        { region: 'eu', priority: 1 },
      ),
      line(
        'demo-claude',
        'anthropic',
        { 'claude-demo': 'demo-claude', 'chat-failover': 'demo-claude' },
        { priority: 1 },
      ),
      line('demo-tasks', 'ark', { 'video-tasks': 'demo-video' }),
      line('broken-openai', 'openai', {
        'chat-failover': 'demo-failing',
        'embedding-failover': 'demo-empty',
      }),
      ...situations.map((id) =>
        line(`${id}-openai`, 'openai', { [id]: id }, { timeouts: { firstByteMs: 2000, idleMs: 5000 } }),
      ),
    ],
    passThrough: [
      // Files are stored at one line and can be read there only.
      { path: '/v1/files', lines: ['demo-us'], price: { perRequest: '0.0001' } },
      { path: '/v1/files/*rest', lines: ['demo-us'], price: { perRequest: '0.0001' } },
      { path: '/v1/audio/*rest', lines: ['demo-us', 'demo-eu'], price: { perRequest: '0.001' } },
      { path: '/v1/realtime', lines: ['demo-us'], price: { perRequest: '0.01' } },
    ],
  }
}
