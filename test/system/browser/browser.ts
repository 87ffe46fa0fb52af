import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'

const CHROMIUM = '/usr/bin/chromium'

/** Why tests in a browser do not run here; false: they do. Fits the `skip` of a test's options. */
export const WITHOUT_CHROMIUM: string | false = existsSync(CHROMIUM)
  ? false
  : `there is no ${CHROMIUM} on this machine`

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A real browser without a window. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS })
}

/** The console in a tab that shares nothing with others. */
export interface ConsoleTab {
  readonly page: Page
  /** Goes to a view: what stands behind the `#`. */
  go(place: string): Promise<void>
  /** Fails if the page has said, or tried, what it should not; then closes the tab. */
  close(): Promise<void>
}

/** The message that Chromium itself logs when the gateway refuses, whatever the page does with the refusal. */
const REFUSED = /^Failed to load resource: the server responded with a status of 4\d\d/

/** Opens the console. Everything that the page reports as an error, a violated policy too, fails `close`. */
export async function openConsole(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<ConsoleTab> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  // The console comes in some eighty files, which takes its time on a busy machine.
  page.setDefaultTimeout(60_000)
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('dialog', (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', (message) => {
    const bad = message.type() === 'error' || message.type() === 'warning'
    if (bad && !REFUSED.test(message.text())) faults.push(message.text())
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(url)) faults.push(`asked elsewhere: ${request.url()}`)
  })
  await page.goto(`${url}/console`)
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  return {
    page,
    async go(place) {
      await page.goto(`${url}/console#${place}`)
    },
    async close() {
      await context.close()
      assert.deepEqual(faults, [])
    },
  }
}

/** Fills the form of the way in, and sends it. */
export async function signIn({ page }: ConsoleTab, secret: string): Promise<void> {
  await page.getByLabel('Key or token').fill(secret)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Opens the dialog behind a button. */
export async function dialogOf(page: Page, button: string | RegExp): Promise<Locator> {
  await page.getByRole('button', { name: button }).click()
  return page.getByRole('dialog')
}

/** The part of a page under a heading. */
export function sectionOf(page: Page, heading: string): Locator {
  return page.locator('section', { has: page.getByRole('heading', { name: heading, exact: true }) }).last()
}

/** The value of a name in a list of names and values. */
export function detailOf(within: Page | Locator, name: string): Locator {
  return within.locator(`div:has(> dt:text-is(${JSON.stringify(name)})) > dd`).first()
}

/** Returns the text of an element, once it is there. */
export async function textOf(locator: Locator): Promise<string> {
  return (await locator.textContent()) ?? ''
}

/** Waits until everything that the view asked for has come. */
export async function settled(page: Page): Promise<void> {
  await page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' })
}

/** Waits until something shows a text, and asserts that it does. */
export async function assertShows(locator: Locator, text: string | RegExp): Promise<void> {
  const found = locator.filter({ hasText: text }).first()
  const came = await found.waitFor().then(
    () => true,
    () => false,
  )
  if (came) return
  assert.fail(`no ${text} in: ${(await locator.allInnerTexts()).join(' | ')}`)
}
