import { describe, it } from 'node:test'
import { assertShows, detailOf, WITHOUT_CHROMIUM } from './browser.ts'
import { consoleSuite } from './console-gateway.ts'

describe('an account in the console', { skip: WITHOUT_CHROMIUM }, () => {
  const suite = consoleSuite()

  it('shows its money and its limits, to its holder and to operators', async () => {
    await suite.called('chat-small', { max_tokens: 20 })
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
      if (kind === 'key') await assertShows(detailOf(page, 'Calls at a time'), '20')
      await close()
    }
  })

  it('says so where it has done nothing', async () => {
    await suite.admin('POST', '/accounts', { id: 'quiet' })
    const { page, go, close } = await suite.signedIn('admin')
    await go('/accounts/quiet')
    await assertShows(page.getByRole('main'), 'No open leases.')
    await close()
  })
})
