import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { before, describe, it } from 'node:test'
import { transformSync } from 'amaro'
import type { Browser, Page } from 'playwright-core'
import type * as Client from '../../../lib/client/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type FileGateway, startFileGateway } from '../gateway/file-gateway.ts'
import { startBrowser, WITHOUT_CHROMIUM } from './browser.ts'

const LIB = new URL('../../../lib/', import.meta.url)
const BODY = { model: 'chat-small', messages: [{ role: 'user', content: 'Hello!' }] }

/** A request of a page, and the part of the answer that it can read. */
interface Asked {
  readonly path: string
  readonly key?: string
  readonly body?: object
}

interface Read {
  readonly status: number
  readonly requestId: string | null
  readonly shouldRetry: string | null
  readonly body: string
}

/** A site of its own: an empty page, and the client as a browser loads it. */
async function startSite(): Promise<{ server: Server; origin: string }> {
  const server = createServer(async (req, res) => {
    if (!req.url?.startsWith('/lib/'))
      return res.setHeader('content-type', 'text/html').end('<!doctype html>')
    const source = await readFile(new URL(req.url.slice('/lib/'.length), LIB), 'utf8')
    res.setHeader('content-type', 'text/javascript').end(transformSync(source, { mode: 'strip-only' }).code)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

describe('a page of another origin', { skip: WITHOUT_CHROMIUM }, () => {
  const cleanUp = cleaningUp()
  let browser: Browser
  let listed: { server: Server; origin: string }
  let other: { server: Server; origin: string }
  let file: FileGateway

  before(async () => {
    if (WITHOUT_CHROMIUM) return
    for (const site of [await startSite(), await startSite()]) {
      cleanUp.after(() => site.server.close().closeAllConnections())
      if (listed) other = site
      else listed = site
    }
    file = await startFileGateway(cleanUp, {}, { cors: { origins: [listed.origin] } })
    browser = await startBrowser()
    cleanUp.after(() => browser.close())
  })

  async function on(origin: string, use: (page: Page) => Promise<void>): Promise<void> {
    const page = await browser.newPage()
    await page.goto(origin)
    await use(page)
    await page.close()
  }

  /** Sends a request with the client, as a page would. */
  const ask = (page: Page, { path, key = 'sk-demo', body }: Asked): Promise<Read> =>
    page.evaluate(
      async ({ url, key, body }) => {
        const client = '/lib/client/index.ts'
        const { withRetries } = (await import(client)) as typeof Client
        const response = await withRetries(fetch)(url, {
          method: body ? 'POST' : 'GET',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          ...(body && { body: JSON.stringify(body) }),
        })
        return {
          status: response.status,
          requestId: response.headers.get('x-request-id'),
          shouldRetry: response.headers.get('x-should-retry'),
          body: await response.text(),
        }
      },
      { url: file.gateway.url + path, key, body },
    )

  it('that is listed calls models with the client, plain and streamed, and reads the request id', () =>
    on(listed.origin, async (page) => {
      const plain = await ask(page, { path: '/v1/chat/completions', body: BODY })
      assert.equal(plain.status, 200)
      assert.match(String(plain.requestId), /^req_/)
      const streamed = await ask(page, { path: '/v1/chat/completions', body: { ...BODY, stream: true } })
      assert.equal(streamed.status, 200)
      assert.match(streamed.body, /data: \[DONE\]/)
    }))

  it('that is listed reads why it was refused, and whether to try again', () =>
    on(listed.origin, async (page) => {
      const refused = await ask(page, { path: '/v1/chat/completions', key: 'sk-wrong', body: BODY })
      assert.equal(refused.status, 401)
      assert.match(String(refused.requestId), /^req_/)
      assert.match(refused.body, /invalid_credential/)
      const unknown = await ask(page, { path: '/v1/nothing' })
      assert.equal(unknown.status, 404)
    }))

  it('that is listed does not reach the admin API', () =>
    on(listed.origin, async (page) => {
      await assert.rejects(
        ask(page, { path: '/admin/accounts', key: 'admin-token-of-the-tests' }),
        /Failed to fetch/,
      )
    }))

  it('that is not listed calls nothing: the browser sends no request behind the preflight', () =>
    on(other.origin, async (page) => {
      const before = file.upstream.requests.length
      await assert.rejects(ask(page, { path: '/v1/chat/completions', body: BODY }), /Failed to fetch/)
      assert.equal(file.upstream.requests.length, before)
    }))

  it('needs no key for a preflight, whose answer has a request id', async () => {
    const preflight = (origin: string) =>
      fetch(`${file.gateway.url}/v1/messages`, {
        method: 'OPTIONS',
        headers: {
          origin,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'x-api-key,anthropic-version',
        },
      })
    const allowed = await preflight(listed.origin)
    assert.equal(allowed.status, 204)
    assert.equal(allowed.headers.get('access-control-allow-origin'), listed.origin)
    assert.equal(allowed.headers.get('access-control-allow-headers'), 'x-api-key,anthropic-version')
    assert.match(String(allowed.headers.get('x-request-id')), /^req_/)
    assert.equal((await preflight(other.origin)).headers.get('access-control-allow-origin'), null)
  })
})
