/** The smallest config that is valid, and parts to build others of. */
export const LINE = {
  id: 'line-1',
  provider: 'openai',
  protocol: 'openai',
  baseUrl: 'https://api.example.com/v1',
  models: { chat: 'upstream-chat' },
}
export const MODEL = { id: 'chat', kind: 'chat' }
export const ACCOUNT = { id: 'acme' }
export const KEY = { id: 'key_1', account: 'acme', secret: 'sk-1' }

/** A valid config with members replaced or added. */
export const configWith = (extra: Record<string, unknown> = {}): Record<string, unknown> => ({
  accounts: [ACCOUNT],
  keys: [KEY],
  models: [MODEL],
  lines: [LINE],
  ...extra,
})

/** A config with a pass-through rule. */
export const passing = (rule: object) => configWith({ passThrough: [rule] })
