import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertShows, detailOf, WITHOUT_CHROMIUM } from './browser.ts'
import { consoleSuite } from './console-gateway.ts'

describe('an account in the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()

  it('shows its money, its activity as plots and as tables, and its errors by code', async () => {
    for (let i = 0; i < 3; i++) await suite.called('chat-small', { max_tokens: 20 })
    const failed = await suite.called('demo-failing')
    const { spent, balance } = await suite.admin<{ spent: string; balance: string }>('GET', '/accounts/demo')
    for (const [kind, place] of [
      ['key', '/account'],
      ['admin', '/accounts/demo'],
    ] as const) {
      const { page, go, close } = await suite.signedIn(kind)
      await go(place)
      await assertShows(detailOf(page, 'Balance'), `$${balance}`)
      await assertShows(detailOf(page, 'Spent'), `$${spent}`)
      await assertShows(detailOf(page, 'Leased'), '$')
      await assertShows(detailOf(page, 'Calls at a time'), '20')
      for (const title of ['Requests over time', 'Spend over time']) {
        const plot = page.locator('figure').filter({ hasText: title })
        await plot.getByRole('img', { name: title }).waitFor()
        assert.ok((await plot.locator('rect').count()) > 0, title)
        assert.ok((await plot.locator('text').count()) > 4, 'its axes are labelled')
        await plot.getByText('As a table').click()
        await plot.getByRole('table', { name: title }).waitFor()
      }
      const requests = page.getByRole('table', { name: 'Requests over time' }).getByRole('row').last()
      const [completed = 0, failures = 0] = (await requests.getByRole('cell').allInnerTexts()).map(Number)
      assert.ok(completed >= 3 && failures >= 1)
      const spend = page.getByRole('table', { name: 'Spend over time' }).getByRole('row').last()
      await assertShows(spend, `$${spent}`)

      await page.getByRole('button', { name: 'last hour' }).click()
      await assertShows(page.getByRole('main'), /\d+ requests, \$/)
      const errors = page.getByRole('table', { name: 'Errors by code' })
      await errors.getByRole('link', { name: 'upstream_error' }).click()
      await assertShows(page.getByRole('rowheader'), failed)
      await close()
    }
  })

  it('says so where it has done nothing', async () => {
    await suite.admin('POST', '/accounts', { id: 'quiet' })
    const { page, go, close } = await suite.signedIn('admin')
    await go('/accounts/quiet')
    await assertShows(page.getByRole('main'), 'No calls in this time.')
    await assertShows(page.getByRole('main'), 'No process has set anything aside.')
    await close()
  })
})
