import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { CallLogEntry } from '../../../lib/middleware/call-log/index.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import { createGateway } from '../../support/any-config.ts'
import { endGateway } from '../../support/assembled-gateway.ts'
import type { CleanUp } from '../../support/clean-up.ts'
import { untilAsync } from '../../support/until.ts'
import { CLAUDE, GPT, OPUS } from './frameworks/framework.ts'
import { startTwin, type Twin, type TwinKind } from './twins/twin.ts'

/** The lines that serve the models, one gateway each. */
export const LINES = {
  openai: { protocol: 'openai', endpoints: ['chat/completions', 'responses'] },
  'open-models': { protocol: 'openai', endpoints: ['chat/completions'] },
  anthropic: { protocol: 'anthropic' },
  gemini: { protocol: 'openai', endpoints: ['chat/completions'] },
} as const satisfies Record<TwinKind, object>
export type LineKind = keyof typeof LINES

/** The provider's name of the model. */
const UPSTREAM_MODEL: Record<LineKind, string> = {
  openai: GPT,
  'open-models': 'open-model',
  anthropic: CLAUDE,
  gemini: 'gemini-3-pro',
}

/** The assembled gateway in front of one twin. */
export interface LineGateway {
  readonly url: string
  readonly twin: Twin
  /** The completed calls of an account and what it has spent, once as many are in the log. */
  bill(key: string, calls: number): Promise<{ completed: readonly CallLogEntry[]; spent: string }>
}

const PRICE = { inputPerMillion: '1', outputPerMillion: '2' }
/** The price above, in nano-units of what a twin has reported. */
export const costOf = (answered: Twin['answered']): number =>
  answered.reduce((sum, { input, output }) => sum + 1000 * input + 2000 * output, 0)

/** Starts the gateway of a line, with an account of its own for each of these keys. */
export async function startLineGateway(
  kind: LineKind,
  keys: readonly string[],
  cleanUp: CleanUp,
): Promise<LineGateway> {
  const twin = await startTwin(kind)
  cleanUp.after(() => twin.close())
  const models = [GPT, CLAUDE, OPUS]
  const gateway = await createGateway(
    {
      accounts: keys.map((key) => ({ id: key, balance: '100' })),
      keys: keys.map((key) => ({ id: key, account: key, secret: key })),
      models: models.map((id) => ({ id, kind: 'chat', price: PRICE })),
      lines: [
        {
          id: kind,
          provider: kind,
          ...LINES[kind],
          baseUrl: `${twin.url}/v1`,
          models: Object.fromEntries(
            models.map((id) => [id, kind === 'anthropic' && id !== GPT ? id : UPSTREAM_MODEL[kind]]),
          ),
        },
      ],
    },
    { databaseUrl: 'memory:', logger: { info() {}, warn() {}, error() {} } },
  )
  const server = gateway.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUp.after(() => endGateway(gateway, server))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const get = async <T>(path: string, key: string): Promise<T> =>
    jsonOf<T>(await fetch(url + path, { headers: { authorization: `Bearer ${key}` } }))
  return {
    url,
    twin,
    async bill(key, calls) {
      const posted = async () => {
        const { data } = await get<{ data: CallLogEntry[] }>('/v1/calls?limit=100', key)
        return data.filter(({ method, outcome }) => method === 'POST' && outcome === 'completed')
      }
      await untilAsync(async () => (await posted()).length >= calls, `${calls} calls in the log`)
      const { spent } = await get<{ spent: string }>('/v1/account', key)
      return { completed: await posted(), spent }
    },
  }
}
