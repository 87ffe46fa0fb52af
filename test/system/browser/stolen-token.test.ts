import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { jsonOf } from '../../support/answer-bodies.ts'
import { type ConsoleTab, openConsole, settled, signIn, WITHOUT_CHROMIUM } from './browser.ts'
import { type ConsoleSuite, consoleSuite } from './console-gateway.ts'

const ROUTES = new URL('../../../examples/gateway/console/routes.ts', import.meta.url)

/** Controls that change nothing in the gateway. */
const READING = [
  /^(15 minutes|1 hour|24 hours|7 days|30 days|this month|custom)$/,
  /^(Filter|Go live|First page|Next page|Export CSV|Export JSON|Copy the request id|Check again|Try again)$/,
]

/** The buttons that roles beside `admin` find in the views, by their text. */
const FOUND: Readonly<Record<string, readonly string[]>> = {
  viewer: [],
  support: ['Save'],
  finance: ['Adjust …', 'Change …', 'Charge', 'Delete …', 'Deposit …', 'New budget …', 'Release'],
}

interface Operation {
  readonly method: string
  readonly path: string
}

describe('a token of a role in the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()
  const patterns = [...readFileSync(ROUTES, 'utf8').matchAll(/pattern: '([^']+)'/g)].map(([, it]) =>
    String(it),
  )

  const tokenOf = async (role: string): Promise<string> => {
    const { token } = await suite.admin<{ token: string }>('POST', '/operators', {
      name: `${role} ${performance.now()}`,
      role,
    })
    return token
  }

  for (const [role, found] of Object.entries(FOUND))
    it(`finds in no view what it may not do: ${role}`, async () => {
      const ids = await recordsIn(suite)
      const token = await tokenOf(role)
      const tab = await openConsole(suite.browser, suite.url)
      const sent: string[] = []
      tab.page.on('request', (request) => {
        if (request.method() !== 'GET') sent.push(`${request.method()} ${request.url()}`)
      })
      await signIn(tab, token)
      await tab.page.getByRole('heading', { name: 'Overview' }).waitFor()
      const offered = new Set<string>()
      // It ends after some seconds; until then it can be resolved.
      await tab.go(`/videos/${await madeVideo(suite)}`)
      for (const text of await changingControls(tab)) offered.add(text)
      for (const pattern of patterns.filter((one) => one !== '/account' && one !== '/videos/:id')) {
        assert.ok(!pattern.includes(':') || ids[pattern], `the test knows no id for ${pattern}`)
        await tab.go(pattern.replace(':id', ids[pattern] ?? ''))
        for (const text of await changingControls(tab)) offered.add(text)
      }
      assert.deepEqual([...offered].sort(), found)
      assert.deepEqual(sent, [], 'looking changes nothing')
      await tab.close()
    })

  it('changes nothing with any request of the API: viewer', async () => {
    const document = await jsonOf<{ paths: Record<string, Record<string, unknown>> }>(
      await fetch(`${suite.url}/openapi.json`),
    )
    const changing = Object.entries(document.paths).flatMap(([path, methods]): Operation[] =>
      Object.keys(methods)
        .filter((method) => path.startsWith('/admin') && ['post', 'patch', 'put', 'delete'].includes(method))
        .map((method) => ({ method: method.toUpperCase(), path })),
    )
    assert.ok(changing.length > 20, `${changing.length} operations`)
    const changes = async () => JSON.stringify(await suite.admin('GET', '/changes?limit=1'))
    const token = await tokenOf('viewer')
    const before = await changes()
    for (const { method, path } of changing) {
      const answer = await fetch(suite.url + path.replace(/\{\w+\}/g, 'demo'), {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: '{}',
      })
      // A caller without a session has none to end.
      const allowed = path === '/admin/session' ? [404] : [403]
      assert.ok(allowed.includes(answer.status), `${method} ${path}: ${answer.status}`)
    }
    assert.equal(await changes(), before)
  })
})

/** The texts of the buttons and fields of a view that could change something. */
async function changingControls({ page }: ConsoleTab): Promise<readonly string[]> {
  await settled(page)
  const buttons = await page.locator('main button').allInnerTexts()
  const forms = await page.locator('main form:not([aria-label=Filters])').count()
  const texts = buttons.filter((text) => !READING.some((known) => known.test(text)))
  return forms > 0 && texts.length === 0 ? ['a form'] : texts
}

/** Makes something for every view; returns the id for each pattern that wants one. */
async function recordsIn(suite: ConsoleSuite): Promise<Readonly<Record<string, string>>> {
  const call = await suite.called('chat-failover')
  const ticket = await suite.filed(call, 'Why?')
  const webhook = await suite.admin<{ id: string }>('POST', '/webhooks', { url: 'https://hooks.example/' })
  const terms = { scope: { account: 'demo' }, amount: '20', period: 'month' }
  const budget = await suite.admin<{ id: string }>('POST', '/budgets', terms)
  return {
    '/calls/:id': call,
    '/accounts/:id': 'demo',
    '/keys/:id': 'key_demo',
    '/models/:id': 'chat-failover',
    '/tickets/:id': ticket,
    '/webhooks/:id': webhook.id,
    '/budgets/:id': budget.id,
  }
}

async function madeVideo(suite: ConsoleSuite): Promise<string> {
  const answer = await fetch(`${suite.url}/v1/videos`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-demo', 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'video-small', prompt: 'waves', seconds: '4' }),
  })
  return (await jsonOf<{ id: string }>(answer)).id
}
