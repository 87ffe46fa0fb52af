import type { TestContext } from 'node:test'
import { type Exchange, gatewayFor, readExchange } from '../../support/exchange.ts'
import { KEY, type TestGateway, type TestGatewayOptions } from '../../support/gateway.ts'

/** The key of another account. */
export const OTHER_KEY = 'sk-test-other'

/** A gateway of two accounts, and ways to ask it for responses. */
export interface ResponsesGateway extends TestGateway {
  /** Creates a response. */
  create(body?: Record<string, unknown>, key?: string): Promise<Exchange>
  /** Asks for what is under `/v1/responses/`. */
  ask(method: string, rest: string, key?: string): Promise<Exchange>
}

/** A gateway that is closed at the end of the test, however that ends. */
export async function responsesGateway(
  t: TestContext,
  { config, ...options }: TestGatewayOptions,
): Promise<ResponsesGateway> {
  const gateway = await gatewayFor(t, {
    ...options,
    config: {
      accounts: [{ id: 'acme' }, { id: 'globex' }],
      keys: [
        { id: 'key_acme', account: 'acme', secret: KEY },
        { id: 'key_globex', account: 'globex', secret: OTHER_KEY },
      ],
      ...config,
    },
  })
  const headers = (key: string) => ({ authorization: `Bearer ${key}` })
  return {
    ...gateway,
    create: async (body = {}, key = KEY) =>
      readExchange(
        await gateway.post(
          '/v1/responses',
          { model: 'chat', input: 'hi', ...body },
          { headers: headers(key) },
        ),
      ),
    ask: async (method, rest, key = KEY) =>
      readExchange(await fetch(`${gateway.url}/v1/responses/${rest}`, { method, headers: headers(key) })),
  }
}

/** The id of a response that came whole. */
export const idOf = ({ json }: Exchange): string => (json as { id: string }).id
