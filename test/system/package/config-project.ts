import { join } from 'node:path'
import type { Consumer } from './consumer.ts'

/** The key of the caller, which the config has in plain text. */
export const CALLER_KEY = 'sk-caller'

/** A config with one line, whose key comes from the environment. */
const configYaml = (baseUrl: string): string => `accounts:
  - { id: acme, name: Acme, balance: '25.00', limits: { rpm: 100 } }
keys:
  - { id: key_acme, account: acme, secret: ${CALLER_KEY} }
models:
  - { id: chat-small, kind: chat, price: { inputPerMillion: '0.15', outputPerMillion: '0.60' } }
lines:
  - id: only
    provider: other
    protocol: openai
    baseUrl: ${baseUrl}/v1
    apiKey: env:UPSTREAM_KEY
    models: { chat-small: model-of-the-provider }
`

/** Writes a config and the `.env` beside it, in the project's folder; returns the path of the config. */
export function writeConfig(project: Consumer, baseUrl: string): string {
  project.write('gateway.yaml', configYaml(baseUrl))
  project.write('.env', 'UPSTREAM_KEY=sk-of-the-provider\nADMIN_TOKEN=from-the-env-file\n')
  return join(project.folder, 'gateway.yaml')
}
