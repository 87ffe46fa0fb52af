import assert from 'node:assert/strict'
import { before } from 'node:test'
import type { Browser } from 'playwright-core'
import { jsonOf } from '../../support/answer-bodies.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  chat,
  type Environment,
  type GatewayProcess,
  lookUp,
  post,
  startSourceGateway,
} from '../../support/gateway-process.ts'
import { type ConsoleTab, openConsole, signIn, startBrowser, WITHOUT_CHROMIUM } from './browser.ts'

export const ADMIN_TOKEN = 'admin-token-of-this-test'

/** A gateway on its demo config and a browser, for the tests of a file. */
export interface ConsoleSuite {
  readonly url: string
  readonly browser: Browser
  /** Calls a model and waits for its entry in the log; answers its request id. */
  called(model: string, extra?: object, headers?: Record<string, string>): Promise<string>
  /** Files a ticket about a call of the demo key; answers its number. */
  filed(requestId: string, message: string): Promise<string>
  /** Asks the admin API. */
  admin<T>(method: string, path: string, body?: object): Promise<T>
  /** A tab in which somebody has signed in. */
  signedIn(kind: 'key' | 'admin', options?: Parameters<typeof openConsole>[2]): Promise<ConsoleTab>
}

/** Starts both before the tests of a file and ends them behind them; the gateway in memory, unless an environment says otherwise. */
export function consoleSuite(environment: Environment = {}): ConsoleSuite {
  let gateway: GatewayProcess
  let browser: Browser
  const cleanUp = cleaningUp()
  before(async () => {
    if (WITHOUT_CHROMIUM) return
    gateway = await startSourceGateway({ ADMIN_TOKEN, ...environment })
    cleanUp.after(() => gateway.stop())
    browser = await startBrowser()
    cleanUp.after(() => browser.close())
  })
  return {
    get url() {
      return gateway.url
    },
    get browser() {
      return browser
    },
    async called(model, extra = {}, headers = {}) {
      const answer = await post(gateway.url, chat(model, 'Hello!', extra), headers)
      await answer.arrayBuffer()
      const id = answer.headers.get('x-request-id')
      assert.ok(id)
      await lookUp(gateway.url, id, headers.authorization?.replace('Bearer ', ''))
      return id
    },
    async filed(requestId, message) {
      const answer = await fetch(`${gateway.url}/v1/tickets`, {
        method: 'POST',
        headers: { authorization: 'Bearer sk-demo', 'content-type': 'application/json' },
        body: JSON.stringify({ request_id: requestId, message }),
      })
      return (await jsonOf<{ id: string }>(answer)).id
    },
    async admin<T>(method: string, path: string, body?: object): Promise<T> {
      const response = await fetch(`${gateway.url}/admin${path}`, {
        method,
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      assert.ok(response.ok, `${method} ${path}: ${response.status}`)
      return jsonOf<T>(response)
    },
    async signedIn(kind, options) {
      const tab = await openConsole(browser, gateway.url, options)
      await signIn(tab, kind === 'key' ? 'sk-demo' : ADMIN_TOKEN)
      await tab.page.getByRole('heading', { name: 'Overview' }).waitFor()
      return tab
    },
  }
}
