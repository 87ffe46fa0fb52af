import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { get } from 'node:http'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { assertShows, WITHOUT_CHROMIUM } from './browser.ts'
import { consoleSuite } from './console-gateway.ts'

const FOLDER = fileURLToPath(new URL('../../../examples/gateway/console/', import.meta.url))
const PAYLOAD = '<img src=x onerror=alert(1)><script>alert(2)</script>'

describe('the console page', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()

  /** Sends a path and headers as they are; `fetch` would tidy them. */
  const statusOf = (path: string, headers: Record<string, string> = {}): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(suite.url)
      get({ hostname, port, path, headers }, (res) => {
        res.resume()
        resolve(res.statusCode)
      }).on('error', reject)
    })

  it('is served with a policy that lets nothing in from elsewhere, and needs no credential', async () => {
    const page = await fetch(`${suite.url}/console`)
    assert.equal(page.status, 200)
    const policy = page.headers.get('content-security-policy')?.split('; ')
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      "img-src 'self' data:",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ]) {
      assert.ok(policy?.includes(rule), rule)
    }
    assert.equal(page.headers.get('x-content-type-options'), 'nosniff')
    assert.equal(page.headers.get('referrer-policy'), 'no-referrer')
    assert.doesNotMatch(await page.text(), /https?:|style=|onload=|<script>/)
  })

  it('its files are served as what they are, with the policy, and asked for again only when changed', async () => {
    const names = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    const files = names.filter((name) => /\.(ts|css|svg)$/.test(name))
    assert.ok(files.length > 40)
    for (const name of files) {
      const file = await fetch(`${suite.url}/console/${name}`)
      assert.equal(file.status, 200, name)
      const type = name.endsWith('.ts') ? 'text/javascript; charset=utf-8' : /^(text\/css|image\/svg)/
      assert.match(String(file.headers.get('content-type')), new RegExp(type))
      assert.ok(file.headers.has('content-security-policy'), name)
      const etag = String(file.headers.get('etag'))
      assert.equal(await statusOf(`/console/${name}`, { 'if-none-match': etag }), 304, name)
    }
    assert.doesNotMatch(await (await fetch(`${suite.url}/console/main.ts`)).text(), /import type|: Session/)
  })

  it('no path leads out of its folder', async () => {
    for (const path of [
      '/console/../app.ts',
      '/console/%2e%2e/app.ts',
      '/console/..%2fapp.ts',
      '/console/..%5capp.ts',
      '/console//etc/passwd',
      '/console/tsconfig.json',
      '/console/__proto__',
      '/console/%00',
      '/console/nothing.ts',
    ]) {
      assert.ok([400, 404].includes((await statusOf(path)) ?? 0), path)
    }
    assert.equal(await statusOf('/console/'), 308)
    assert.equal((await fetch(`${suite.url}/console`, { method: 'POST' })).status, 404)
  })

  it('texts of callers and operators are shown as the texts that they are', async () => {
    const id = await suite.called(PAYLOAD, {}, { 'x-request-id': 'x'.repeat(20) })
    const number = await suite.filed(id, PAYLOAD)
    await suite.admin('POST', '/accounts', { id: 'odd<b>"&/', name: PAYLOAD })
    const tab = await suite.signedIn('admin')
    for (const place of [
      '/calls',
      `/calls/${id}`,
      '/tickets',
      `/tickets/${number}`,
      '/accounts',
      '/changes',
    ]) {
      await tab.go(place)
      await assertShows(tab.page.getByRole('main'), PAYLOAD)
      assert.equal(await tab.page.locator('main :is(script, b, img)').count(), 0, place)
    }
    await tab.go(`/accounts/${encodeURIComponent('odd<b>"&/')}`)
    assert.equal(await tab.page.getByLabel('Name', { exact: true }).inputValue(), PAYLOAD)
    await tab.go(`/calls/${encodeURIComponent(PAYLOAD)}`)
    await assertShows(tab.page.getByRole('main'), PAYLOAD)
    await tab.go(`/${PAYLOAD}`)
    await assertShows(tab.page.getByRole('heading'), 'Page not found')
    await tab.close()
  })

  it('the policy is in force: what would run a text as code does not', async () => {
    const { page, close } = await suite.signedIn('key')
    const refused = await page.evaluate<string>(
      "try { document.body.innerHTML = '<b>x</b>'; 'done' } catch (error) { error.name }",
    )
    assert.equal(refused, 'TypeError')
    await assert.rejects(close(), /Trusted/i)
  })
})
