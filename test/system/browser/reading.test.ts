import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertShows, openConsole, settled, WITHOUT_CHROMIUM } from './browser.ts'
import { consoleSuite } from './console-gateway.ts'

/** Whether the focus is to be seen, or on nothing: between the page's end and its beginning. */
const FOCUS_SEEN = `document.activeElement === document.body ||
  getComputedStyle(document.activeElement).outlineStyle !== 'none'`
const FOCUSED = `(document.activeElement.textContent || document.activeElement.name || '').trim()`

describe('reading the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()

  it('everything is done with the keyboard alone, and the focus can be seen', async () => {
    const id = await suite.called('demo-failing')
    const tab = await openConsole(suite.browser, suite.url)
    const { page, close } = tab
    const press = (key: string) => page.keyboard.press(key)
    const focused = () => page.evaluate<string>(FOCUSED)
    const tabTo = async (text: string): Promise<void> => {
      for (let i = 0; i < 150; i++) {
        if ((await focused()) === text) return
        await press('Tab')
        assert.ok(await page.evaluate<boolean>(FOCUS_SEEN), await focused())
      }
      assert.fail(`the focus never came to "${text}"`)
    }
    await tabTo('secret')
    await page.keyboard.type('sk-demo')
    await press('Enter')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await page.reload()
    await page.getByRole('table').first().waitFor()
    await settled(page)
    await page.getByRole('button', { name: 'Sign out' }).focus()
    await page.evaluate('document.activeElement.blur()')

    await tabTo('Skip to the content')
    await press('Enter')
    assert.equal(await page.evaluate<string>('document.activeElement.id'), 'main')
    await tabTo('id')
    await page.keyboard.type(id)
    await press('Enter')
    await page.getByRole('heading', { name: 'Call', exact: true }).waitFor()
    assert.equal(await focused(), 'Call', 'the focus goes to the heading of what is shown')
    await assertShows(page.getByRole('status'), 'Call – Gateway console')
    await tabTo('message')
    await page.keyboard.type('Please look at it.')
    await press('Tab')
    await press('Enter')
    await page.getByRole('link', { name: /^tkt_/ }).waitFor()
    await close()
  })

  it('on a phone the views stand behind a button that says whether it is open', async () => {
    const { page, close } = await suite.signedIn('key', { viewport: { width: 390, height: 800 } })
    const views = page.getByRole('navigation', { name: 'Views' })
    assert.equal(await views.isVisible(), false)
    const menu = page.getByRole('button', { name: 'Menu' })
    assert.equal(await menu.getAttribute('aria-expanded'), 'false')
    await menu.click()
    assert.equal(await menu.getAttribute('aria-expanded'), 'true')
    await views.getByRole('link', { name: 'Calls' }).click()
    await page.getByRole('heading', { name: 'Calls' }).waitFor()
    assert.equal(await views.isVisible(), false)
    await close()
  })
})
