import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertShows, openConsole, settled, WITHOUT_CHROMIUM } from './browser.ts'
import { consoleSuite } from './console-gateway.ts'

const VIEWS = {
  key: ['/', '/calls', '/account', '/models', '/models/chat-failover', '/tickets'],
  admin: [
    '/calls',
    '/accounts',
    '/accounts/demo',
    '/keys',
    '/keys/key_demo',
    '/lines',
    '/tickets',
    '/changes',
    '/ledger',
  ],
} as const

/** By how much the page, or its contents within it, are wider than the window. */
const OVERFLOW = `Math.max(document.documentElement.scrollWidth - innerWidth,
  document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth)`
/** Whether the focus is to be seen, or on nothing: between the page's end and its beginning. */
const FOCUS_SEEN = `document.activeElement === document.body ||
  getComputedStyle(document.activeElement).outlineStyle !== 'none'`
const FOCUSED = '(document.activeElement.textContent || document.activeElement.name).trim()'

/** The lowest contrast of the page's words to what is behind them, as WCAG counts it. */
const CONTRAST = `(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  const rgb = (colours) => {
    canvas.clearRect(0, 0, 1, 1)
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1) }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)
  }
  const light = (channels) => {
    const [r, g, b] = channels.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const behind = (element) => {
    const layers = []
    for (let e = element; e; e = e.parentElement) layers.unshift(getComputedStyle(e).backgroundColor)
    return layers
  }
  const worst = { ratio: 99, text: '' }
  for (const element of document.querySelectorAll('main *, header *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '')
    if (!own || element.closest('[disabled], svg') || !element.checkVisibility()) continue
    const layers = behind(element)
    const [a, b] = [light(rgb([...layers, getComputedStyle(element).color])), light(rgb(layers))]
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    if (ratio < worst.ratio) Object.assign(worst, { ratio, text: element.textContent })
  }
  return worst
})()`

describe('reading the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()

  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [390, 1280]) {
      it(`fits and can be read: ${colorScheme}, ${width} px`, async () => {
        const ids = [
          await suite.called('chat-failover'),
          await suite.called('chat-small', { provider: { only: ['nobody'] } }),
          await suite.called('chat-small', {}, { 'idempotency-key': `${colorScheme}-${width}` }),
        ]
        const grounds: string[] = []
        for (const kind of ['key', 'admin'] as const) {
          const options = { viewport: { width, height: 800 }, colorScheme }
          const { page, go, close } = await suite.signedIn(kind, options)
          for (const place of [...VIEWS[kind], ...ids.map((id) => `/calls/${id}`)]) {
            await go(place)
            await settled(page)
            assert.ok((await page.evaluate<number>(OVERFLOW)) <= 0, `${place} is wider than the page`)
            const { ratio, text } = await page.evaluate<{ ratio: number; text: string }>(CONTRAST)
            assert.ok(ratio >= 4.5, `${place}: "${text}" has a contrast of ${ratio}`)
            assert.equal(await page.getByRole('heading', { level: 1 }).count(), 1, place)
            assert.equal(await page.getByRole('main').count(), 1, place)
          }
          grounds.push(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor'))
          await close()
        }
        const [, red] = /rgb\((\d+)/.exec(grounds[0] ?? '') ?? []
        assert.equal(Number(red) > 128, colorScheme === 'light')
      })
    }
  }

  it('everything is done with the keyboard alone, and the focus can be seen', async () => {
    const id = await suite.called('demo-failing')
    const tab = await openConsole(suite.browser, suite.url)
    const { page, close } = tab
    const press = (key: string) => page.keyboard.press(key)
    const focused = () => page.evaluate<string>(FOCUSED)
    const tabTo = async (text: string): Promise<void> => {
      for (let i = 0; i < 60; i++) {
        if ((await focused()) === text) return
        await press('Tab')
        assert.ok(await page.evaluate<boolean>(FOCUS_SEEN), await focused())
      }
      assert.fail(`the focus never came to "${text}"`)
    }
    await tabTo('secret')
    await page.keyboard.type('sk-demo')
    await press('Enter')
    await page.getByRole('heading', { name: 'Find a call' }).waitFor()
    await page.reload()
    await page.getByRole('table').waitFor()
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
