import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { cleaningUp } from '../../support/clean-up.ts'
import { type GatewayProcess, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { type SignInProvider, startSignInProvider } from '../../support/sign-in-provider.ts'
import { assertShows, startBrowser, WITHOUT_CHROMIUM } from './browser.ts'

/** A request of the page itself, with the session of the browser. */
function fetched(page: Page, method: string, path: string, body?: object): Promise<number> {
  const asked = { method, path, body: body && JSON.stringify(body) }
  return page.evaluate(async ({ method, path, body }) => {
    const headers = { 'x-gateway-console': '1', ...(body && { 'content-type': 'application/json' }) }
    const response = await fetch(path, { method, headers, ...(body && { body }) })
    await response.arrayBuffer()
    return response.status
  }, asked)
}

describe('signing in to the console at a provider, over two workers', { skip: WITHOUT_CHROMIUM }, () => {
  const cleanUp = cleaningUp()
  let provider: SignInProvider
  let gateway: GatewayProcess
  let browser: Browser
  before(async () => {
    provider = await startSignInProvider(cleanUp)
    const folder = await temporaryFolder()
    cleanUp.after(folder.remove)
    const { issuer, clientId, clientSecret, roleClaim, scope } = provider.settings
    gateway = await startGatewayProcess({
      ADMIN_TOKEN: 'admin-token-of-this-test',
      DATABASE_URL: `sqlite:${folder.path}/gateway.db`,
      WORKERS: '2',
      OIDC_ISSUER: issuer,
      OIDC_CLIENT_ID: clientId,
      OIDC_CLIENT_SECRET: clientSecret,
      OIDC_ROLE_CLAIM: roleClaim,
      OIDC_SCOPE: scope,
    })
    cleanUp.after(() => gateway.stop())
    provider.serve(gateway.url)
    browser = await startBrowser()
    cleanUp.after(() => browser.close())
  })

  async function signInAs(person: string): Promise<Page> {
    provider.person = person
    const context = await browser.newContext()
    cleanUp.after(() => context.close())
    const page = await context.newPage()
    await page.goto(`${gateway.url}/console`)
    await page.getByRole('link', { name: /^Sign in with / }).click()
    return page
  }

  it('opens the console by name and role, and keeps it open whichever worker is asked', async () => {
    const page = await signInAs('ada')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await assertShows(page.getByRole('banner'), 'ada@example.com')
    for (let i = 0; i < 6; i++) {
      await page.reload()
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
    }
    const asked = Array.from({ length: 20 }, () => fetched(page, 'GET', '/admin/accounts'))
    assert.deepEqual(new Set(await Promise.all(asked)), new Set([200]))
    assert.equal(await fetched(page, 'POST', '/admin/accounts', { id: 'by-ada' }), 201)
  })

  it('is over for all tabs and workers once the operator signs out', async () => {
    const page = await signInAs('ada')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    const other = await page.context().newPage()
    await other.goto(`${gateway.url}/console`)
    await other.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('link', { name: /^Sign in with / }).waitFor()
    const asked = Array.from({ length: 8 }, () => fetched(other, 'GET', '/admin/accounts'))
    assert.deepEqual(new Set(await Promise.all(asked)), new Set([401]))
  })

  it('lets a viewer look and change nothing', async () => {
    const page = await signInAs('vic')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    assert.equal(await fetched(page, 'GET', '/admin/accounts'), 200)
    assert.equal(await fetched(page, 'POST', '/admin/accounts', { id: 'by-vic' }), 403)
    assert.equal(await fetched(page, 'GET', '/admin/accounts/by-vic'), 404)
  })

  it('names the person without a role, and opens nothing', async () => {
    const page = await signInAs('nobody')
    await assertShows(page.getByRole('alert'), 'no role in this gateway')
    assert.equal(await fetched(page, 'GET', '/admin/accounts'), 401)
  })
})
