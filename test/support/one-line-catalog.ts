import { loadConfig } from '../../lib/core/config/index.ts'

/** One model on one line, at which nobody listens. */
export const { catalog } = loadConfig({
  models: [{ id: 'chat', kind: 'chat' }],
  lines: [
    { id: 'l1', provider: 'p', protocol: 'openai', baseUrl: 'http://127.0.0.1:9/v1', models: { chat: 'm' } },
  ],
})
