import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { untilAsync } from '../../support/until.ts'
import { openConsole, settled, signIn, textOf, WITHOUT_CHROMIUM } from './browser.ts'
import { type ConsoleSuite, consoleSuite } from './console-gateway.ts'

interface Counts {
  readonly requests: number
  readonly refused: number
  readonly failed: number
}

/** Each account makes these calls: three are answered, one of them in part, as its caller leaves. */
const MADE: Counts = { requests: 8, refused: 3, failed: 2 }
const LIMIT_MS = 240_000

async function callAs(suite: ConsoleSuite, secret: string): Promise<void> {
  const send = (path: string, body: object | null, more: RequestInit = {}) =>
    fetch(`${suite.url}/v1/${path}`, {
      method: body === null ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        'x-gateway-tags': 'team=search',
      },
      body: body && JSON.stringify(body),
      ...more,
    })
  const chat = (model: string, more: object = {}) => ({
    model,
    messages: [{ role: 'user', content: 'Hello!' }],
    user: 'ada',
    ...more,
  })
  const bodies = [
    chat('chat-small'),
    chat('chat-failover'),
    chat('demo-failing'),
    // Cut off by its line, behind a part of the answer.
    chat('demo-cut', { stream: true }),
    chat('no-such-model'),
    chat('chat-small', { provider: { only: ['nobody'] } }),
    chat('chat-small', { messages: 'none' }),
  ]
  for (const body of bodies) {
    const answer = await send('chat/completions', body)
    await answer.text().catch(() => {})
  }
  const leaving = new AbortController()
  const body = chat('demo-stall', { stream: true })
  const answer = await send('chat/completions', body, { signal: leaving.signal })
  await answer.body?.getReader().read()
  leaving.abort()
  // Looking something up is in the log, and is no usage.
  for (const path of ['models', 'calls', 'calls/req_00000000000000000000000000'])
    await (await send(path, null)).text()
}

/** How many calls the rows of the present list of calls stand for, on all its pages. */
async function listed(page: Page): Promise<number> {
  const rows = page.getByRole('table', { name: 'Calls' }).locator('tbody tr')
  let sum = 0
  for (const row of await rows.all()) {
    const [, more = '0'] = /and ([\d,]+) more like it/.exec(await textOf(row)) ?? []
    sum += 1 + Number(more.replaceAll(',', ''))
  }
  return sum
}

/** Follows each count of a page to its list, and compares them; returns how many it has followed. */
async function follow(page: Page, place: string): Promise<number> {
  const home = page.url()
  const links = await page
    .getByRole('main')
    .locator('a[href*="counted="]')
    .evaluateAll((found: { textContent: string; getAttribute(name: string): string | null }[]) =>
      found.map((link) => [link.textContent, link.getAttribute('href') ?? ''] as const),
    )
  for (const [count, href] of links) {
    await page.goto(new URL(href, home).href)
    await page.getByRole('heading', { name: 'Calls' }).waitFor()
    await settled(page)
    assert.equal(await listed(page), Number(count), `${place}: ${href}`)
  }
  return links.length
}

const folder = mkdtempSync(join(tmpdir(), 'counts-'))
after(() => rmSync(folder, { recursive: true, force: true }))

for (const [store, environment] of [
  ['in memory', {}],
  ['on SQLite', { DATABASE_URL: `sqlite:${join(folder, 'gateway.db')}` }],
] as const)
  describe(`counts in the console, ${store}`, { skip: WITHOUT_CHROMIUM }, () => {
    const suite = consoleSuite(environment)

    it('link to lists of exactly the calls that they count', { timeout: LIMIT_MS }, async () => {
      const secrets: string[] = []
      for (const account of ['first', 'second']) {
        await suite.admin('POST', '/accounts', { id: account, prepaid: false })
        secrets.push((await suite.admin<{ secret: string }>('POST', '/keys', { account })).secret)
      }
      await Promise.all(secrets.map((secret) => callAs(suite, secret)))
      const countsOf = async (query: string): Promise<Counts | undefined> => {
        const { data } = await suite.admin<{ data: Counts[] }>('GET', `/usage?${query}`)
        return data[0]
      }
      for (const account of ['first', 'second'])
        await untilAsync(async () => (await countsOf(`account=${account}`))?.requests === MADE.requests)
      const { requests, refused, failed } = (await countsOf('account=first')) as Counts
      assert.deepEqual({ requests, refused, failed }, MADE)

      const operator = await suite.signedIn('admin')
      for (const [place, atLeast] of [
        ['/?period=15m', 20],
        ['/?period=24h', 20],
        ['/accounts/second?period=1h', 10],
        ['/reports?group_by=minute,account', 6],
        ['/reports?group_by=model,user,tag:team&account=first', 8],
        ['/reports?group_by=day,line', 6],
      ] as const) {
        await operator.go(place)
        await settled(operator.page)
        const followed = await follow(operator.page, place)
        assert.ok(followed >= atLeast, `${place}: ${followed} counts`)
      }
      await operator.close()

      const holder = await openConsole(suite.browser, suite.url)
      await signIn(holder, secrets[1] as string)
      await holder.page.getByRole('heading', { name: 'Overview' }).waitFor()
      for (const place of ['/?period=15m', '/reports?group_by=minute,key']) {
        await holder.go(place)
        await settled(holder.page)
        assert.ok((await follow(holder.page, place)) >= 3, place)
      }
      await holder.close()
    })
  })
