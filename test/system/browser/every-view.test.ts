import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { settled, WITHOUT_CHROMIUM } from './browser.ts'
import { type ConsoleSuite, consoleSuite } from './console-gateway.ts'

const ROUTES = new URL('../../../examples/gateway/console/routes.ts', import.meta.url)
/** Less than the file may take. */
const LIMIT_MS = 360_000

/** The views of a key's holder, beside the pages of calls. */
const OF_KEYS = ['/', '/reports', '/calls', '/account', '/models', '/models/:id', '/tickets', '/tickets/:id']

/** Buttons that open a dialog, beside those that send a form first. */
const OPENERS = 'main button[type=button]:text("…")'

/** By how much the page, or its contents within it, are wider than the window. */
const OVERFLOW = `Math.max(document.documentElement.scrollWidth - innerWidth,
  document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth)`

/** The texts that reach beyond the box that they stand in. */
const CUT_OFF = `(() => {
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
  const range = document.createRange()
  const found = []
  while (texts.nextNode()) {
    const { currentNode: text } = texts
    const box = text.parentElement.closest('td, th, dd, dt, li, p, button, div, dialog, main')
    range.selectNodeContents(text)
    if (text.data.trim() && box.clientWidth > 1 && range.getBoundingClientRect().right > box.getBoundingClientRect().right + 1)
      found.push(text.data)
  }
  return found
})()`

/** Returns the faults that axe finds, a line for each element. The colours of another scheme change contrasts only. */
async function faultsOf(page: Page, rules: readonly string[]): Promise<readonly string[]> {
  const only = rules.length === 0 ? {} : { runOnly: { type: 'rule', values: rules } }
  return page.evaluate<readonly string[]>(
    `axe.run(document, { resultTypes: ['violations'], ...${JSON.stringify(only)} }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ html, any }) =>
        id + ': ' + html.slice(0, 200) + ' ' + (any[0]?.message ?? ''))))`,
  )
}

/** Fails if the page is wider than a window, or axe finds something wrong. */
async function assertFits(page: Page, place: string): Promise<void> {
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 })
    assert.ok((await page.evaluate<number>(OVERFLOW)) <= 0, `${place} is wider than ${width} px`)
    assert.deepEqual(await page.evaluate(CUT_OFF), [], `${place}, ${width} px`)
    await page.emulateMedia({ colorScheme: 'light' })
    assert.deepEqual(await faultsOf(page, []), [], `${place}, ${width} px`)
    await page.emulateMedia({ colorScheme: 'dark' })
    assert.deepEqual(await faultsOf(page, ['color-contrast']), [], `${place}, ${width} px, dark`)
  }
}

/** Fails if the focus leaves an open dialog for anything else of the page, or cannot be seen. */
async function assertKeepsFocus(page: Page, place: string): Promise<void> {
  // The browser marks the parts of a date by itself.
  const kept = `document.activeElement === document.body || document.activeElement.closest('dialog') &&
    (document.activeElement.type === 'datetime-local' || getComputedStyle(document.activeElement).outlineStyle !== 'none')`
  assert.ok(await page.evaluate<boolean>(`document.activeElement.matches('dialog *')`), place)
  for (let i = 0; i < 25; i++) {
    await page.keyboard.press('Tab')
    const at = await page.evaluate<string>('document.activeElement.outerHTML.slice(0, 100)')
    assert.ok(await page.evaluate<boolean>(`Boolean(${kept})`), `${place}: ${at}`)
  }
}

/** Makes what every view has something to show of; returns the id for each pattern that wants one. */
async function idsIn(suite: ConsoleSuite): Promise<Readonly<Record<string, readonly string[]>>> {
  const calls = [
    await suite.called('chat-failover'),
    await suite.called('chat-small', { provider: { only: ['nobody'] } }),
    await suite.called('chat-small', {}, { 'idempotency-key': 'kept' }),
  ]
  const webhook = await suite.admin<{ id: string }>('POST', '/webhooks', { url: 'https://hooks.example/' })
  const terms = { scope: { account: 'demo' }, amount: '20', period: 'month', soft: [0.5] }
  const budget = await suite.admin<{ id: string }>('POST', '/budgets', terms)
  await suite.admin('POST', '/operators', { name: `Ada ${calls[0]}`, role: 'viewer' })
  const ticket = await suite.filed(calls[0] ?? '', 'Why did it fail over?')
  return {
    '/calls/:id': calls,
    '/accounts/:id': ['demo'],
    '/keys/:id': ['key_demo'],
    '/models/:id': ['chat-failover'],
    '/tickets/:id': [ticket],
    '/videos/:id': ['video_nothing'],
    '/webhooks/:id': [webhook.id],
    '/budgets/:id': [budget.id],
  }
}

describe('every view of the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()
  const patterns = [...readFileSync(ROUTES, 'utf8').matchAll(/pattern: '([^']+)'/g)].map(([, it]) =>
    String(it),
  )

  for (const kind of ['key', 'admin'] as const) {
    it(`fits and is accessible, on desktops and phones, light and dark: ${kind}`, {
      timeout: LIMIT_MS,
    }, async () => {
      const ids = await idsIn(suite)
      const { page, go, close } = await suite.signedIn(kind)
      const own = patterns.filter((pattern) =>
        kind === 'key' ? OF_KEYS.includes(pattern) || pattern === '/calls/:id' : pattern !== '/account',
      )
      assert.ok(own.length > OF_KEYS.length - 1)
      let dialogs = 0
      for (const pattern of own) {
        const named = ids[pattern]
        assert.ok(named || !pattern.includes(':'), `the test knows no id for ${pattern}`)
        for (const place of named?.map((id) => pattern.replace(':id', id)) ?? [pattern]) {
          await page.emulateMedia({ colorScheme: 'light' })
          await page.setViewportSize({ width: 1280, height: 800 })
          await go(place)
          await settled(page)
          await page.evaluate(`window.axe ?? (() => { ${axe.source} })()`)
          await assertFits(page, place)
          for (const text of new Set(await page.locator(OPENERS).allInnerTexts())) {
            const opener = page.locator(OPENERS).filter({ hasText: text }).first()
            await opener.click()
            const dialog = page.getByRole('dialog')
            await dialog.waitFor()
            await assertFits(page, `${place}, ${text}`)
            await assertKeepsFocus(page, `${place}, ${text}`)
            await page.keyboard.press('Escape')
            await dialog.waitFor({ state: 'detached' })
            assert.ok(
              await opener.evaluate((button) => button === button.ownerDocument.activeElement),
              `${place}, ${text}: the focus comes back`,
            )
            dialogs++
          }
        }
      }
      assert.equal(dialogs > 10, kind === 'admin', `${dialogs} dialogs`)
      await close()
    })
  }
})
