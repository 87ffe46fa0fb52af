import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertShows, openConsole, signIn, WITHOUT_CHROMIUM } from './browser.ts'
import { ADMIN_TOKEN, consoleSuite } from './console-gateway.ts'

describe('signing in to the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()
  const stored = 'sessionStorage.length + localStorage.length + document.cookie.length'

  it('a wrong key or token and nothing at all say why, and open nothing', async () => {
    const tab = await openConsole(suite.browser, suite.url)
    const alert = tab.page.getByRole('alert')
    await tab.page.getByRole('button', { name: 'Sign in' }).click()
    await assertShows(alert, 'Type in your key or token')
    await signIn(tab, 'sk-wrong')
    await assertShows(alert, 'This is neither a valid API key nor the token of an operator.')
    await tab.page.reload()
    await tab.page.getByRole('button', { name: 'Sign in' }).waitFor()
    assert.equal(await tab.page.evaluate<number>(stored), 0)
    await tab.close()
  })

  it('a key sees its own views, keeps them over a reload, and nothing is left after signing out', async () => {
    const { page, close } = await suite.signedIn('key')
    const views = page.getByRole('navigation', { name: 'Views' })
    assert.deepEqual(await views.getByRole('link').allInnerTexts(), [
      'Overview',
      'Reports',
      'Calls',
      'Account',
      'Models',
      'Tickets',
    ])
    await page.reload()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    assert.equal(await page.evaluate<number>(stored), 0)
    assert.equal(await page.getByLabel('Key or token').inputValue(), '')
    await close()
  })

  it('leads to the view that was asked for', async () => {
    const tab = await openConsole(suite.browser, suite.url)
    await tab.go('/ledger')
    await signIn(tab, ADMIN_TOKEN)
    await tab.page.getByRole('heading', { name: 'Ledger' }).waitFor()
    await tab.close()
  })

  it('a key that is good for nothing any more leads back to the way in, with the reason', async () => {
    const { secret, id } = await suite.admin<{ secret: string; id: string }>('POST', '/keys', {
      account: 'demo',
    })
    const tab = await openConsole(suite.browser, suite.url)
    await signIn(tab, secret)
    await tab.page.getByRole('heading', { name: 'Overview' }).waitFor()
    await suite.admin('DELETE', `/keys/${id}`)
    // A change reaches the process within 5 s.
    const deadline = performance.now() + 15_000
    const alert = tab.page.getByRole('alert')
    while (!(await alert.isVisible())) {
      assert.ok(performance.now() < deadline, 'still signed in')
      await tab.page.reload()
      await tab.page.locator('[aria-busy=false], [role=alert]').first().waitFor()
    }
    await assertShows(tab.page.getByRole('alert'), 'The API key is not valid')
    await tab.page.getByRole('button', { name: 'Sign in' }).waitFor()
    await tab.close()
  })
})
